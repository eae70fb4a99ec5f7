// The table of data sets, and opening one by its name.
#include <filesystem>

#include "data/formats.h"
#include "engine/nearest.h"

namespace skein::data {

const std::vector<SourceRow>& sources() {
  static const std::vector<SourceRow> rows{
#define SOURCE(name, open, source) {name, source, open},
#include "data/sources.def"
#undef SOURCE
  };
  return rows;
}

std::string with_kind(const std::string& spec) {
  namespace fs = std::filesystem;
  for (const SourceRow& row : sources())
    if (spec.substr(0, spec.find(':')) == row.name) return spec;
  std::error_code none;
  if (!fs::is_directory(spec, none)) return spec;
  for (const auto& entry : fs::directory_iterator(spec, none))
    if (entry.path().extension() == ".tar") return "webdataset:" + spec;
  return "imagefolder:" + spec;
}

Split open_data(const std::string& spec, uint64_t seed) {
  const size_t colon = spec.find(':');
  const std::string kind = spec.substr(0, colon);
  std::string path = colon == std::string::npos ? "" : spec.substr(colon + 1);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::vector<std::string> names;
  std::string all;
  for (const SourceRow& row : sources()) {
    if (kind == row.name) return row.open(path, seed);
    names.push_back(row.name);
    all += (all.empty() ? "" : ", ") + names.back();
  }
  throw BadOption(text("--data ", spec, ": neither a directory nor a kind of data; kinds are ", all,
                       did_you_mean(kind, names)));
}

}  // namespace skein::data
