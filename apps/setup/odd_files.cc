// Unites the workers' lists, and describes them.
#include "apps/setup/odd_files.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/base/together.h"

namespace skein::apps {
namespace {

// A census' kinds that are converted, or those that are left out.
Json part_of(const data::Census& c, bool left_out) {
  Json j = Json::object();
  const int64_t files = left_out ? c.left_out() : c.converted();
  if (files == 0) return j;
  j["files"] = files;
  for (const data::OddKind& k : data::odd_kinds())
    if (data::left_out(k.kind) == left_out && c.count(k.kind) > 0) j[k.name] = c.count(k.kind);
  return j;
}

std::string words_for(const OddFiles& all, bool left_out) {
  std::string kinds;
  for (const data::OddKind& k : data::odd_kinds()) {
    const int64_t n = all.train.count(k.kind) + all.test.count(k.kind);
    if (data::left_out(k.kind) == left_out && n > 0) kinds += text(kinds.empty() ? "" : ", ", n, ' ', k.name);
  }
  return kinds;
}

}  // namespace

void OddFiles::add(const OddFiles& other) { train.add(other.train), test.add(other.test); }

void OddFiles::unite(comm::Communicator& comm) {
  if (comm.size() == 1) return;
  const std::string mine = pack();
  for (const Tensor& t :
       comm.gather(Tensor::of<uint8_t>({int64_t(mine.size())}, {mine.begin(), mine.end()}), 0))
    add(unpack({static_cast<const char*>(t.raw()), size_t(t.size())}));
  *this = unpack(from_rank_zero(comm, pack()));
}

std::string OddFiles::pack() const { return train.pack() + ';' + test.pack(); }

OddFiles OddFiles::unpack(const std::string& packed) {
  const size_t middle = packed.find(';');
  if (middle == std::string::npos) return {data::Census::unpack(packed), {}};
  return {data::Census::unpack(packed.substr(0, middle)), data::Census::unpack(packed.substr(middle + 1))};
}

std::vector<std::string> OddFiles::names_left_out(const data::Split& split, size_t most) const {
  std::vector<std::string> names;
  for (const auto& [census, source] : {std::pair{&train, split.train.get()}, {&test, split.test.get()}})
    for (const auto& [index, odd] : census->files())
      if (data::left_out(odd) && names.size() < most && index < source->size())
        names.push_back(source->name(index));
  return names;
}

Json OddFiles::to_json() const {
  Json all = Json::object();
  for (const auto& [name, census] : {std::pair{"train", &train}, {"test", &test}})
    for (const bool left_out : {false, true})
      if (Json part = part_of(*census, left_out); !part.empty())
        all[name][left_out ? "left_out" : "converted"] = std::move(part);
  return all;
}

std::string OddFiles::to_line() const {
  if (train.empty() && test.empty()) return "";
  const int64_t converted = train.converted() + test.converted();
  std::string line = "unusual files: ";
  if (converted > 0) line += text(converted, " converted (", words_for(*this, false), ')');
  if (left_out() > 0)
    line += text(converted > 0 ? ", " : "", left_out(), " skipped (", words_for(*this, true), ')');
  return line;
}

}  // namespace skein::apps
