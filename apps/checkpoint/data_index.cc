// Hashes the list of images.
#include "apps/checkpoint/data_index.h"

#include <fmt/format.h>

#include "apps/base/digest.h"

namespace skein::apps {
namespace {

DataIndex::Part part_of(const data::DataSource& source) {
  constexpr size_t kPiece = 1 << 16;
  Digest digest;
  std::string waiting;
  for (int64_t i = 0; i < source.size(); ++i) {
    waiting += source.key(i);
    waiting += '\0';
    waiting += std::to_string(source.label(i)) + '\n';
    if (waiting.size() < kPiece && i + 1 < source.size()) continue;
    digest.add(waiting.data(), waiting.size());
    waiting.clear();
  }
  return {source.size(), digest.hex()};
}

}  // namespace

DataIndex index_of(const data::Split& split) { return {part_of(*split.train), part_of(*split.test)}; }

std::vector<std::string> changes_since(const DataIndex& then, const DataIndex& now,
                                       const data::Split& split) {
  std::vector<std::string> lines;
  for (const auto& [name, before, after] :
       {std::tuple{"training images", &then.train, &now.train}, {"test images", &then.test, &now.test}}) {
    if (before->hash.empty() || *before == *after) continue;
    lines.push_back(
        before->images != after->images
            ? fmt::format("changed since: {} {} -> {}", name, before->images, after->images)
            : fmt::format("changed since: {}, {} as before, but not the same ones", name, before->images));
  }
  if (!lines.empty() && split.tenth)
    lines.push_back(
        "warning: the tenth kept for testing is chosen among all files, so images that the model was trained "
        "on "
        "may be test images now; arrange the data as train/ and val/ to keep them apart");
  return lines;
}

}  // namespace skein::apps
