// The table of data sets, and opening one by its name.
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

Split open_data(const std::string& spec, uint64_t seed) {
  const size_t colon = spec.find(':');
  const std::string kind = spec.substr(0, colon);
  const std::string path = colon == std::string::npos ? "" : spec.substr(colon + 1);
  std::vector<std::string> names;
  std::string all;
  for (const SourceRow& row : sources()) {
    if (kind == row.name) return row.open(path, seed);
    names.push_back(row.name);
    all += (all.empty() ? "" : ", ") + names.back();
  }
  throw BadOption(text("unknown kind of data \"", kind, "\"; did you mean \"", nearest(kind, names),
                       "\"? There are ", all));
}

}  // namespace skein::data
