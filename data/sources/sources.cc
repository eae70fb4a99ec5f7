// The table of data sets; opens one by its name.
#include <filesystem>

#include "data/sources/formats.h"
#include "engine/words/file.h"
#include "engine/words/find_row.h"

namespace skein::data {

const std::vector<SourceRow>& sources() {
  static const std::vector<SourceRow> rows{
#define SOURCE(name, open, source) {name, source, open},
#include "data/sources/sources.def"
#undef SOURCE
  };
  return rows;
}

std::string with_kind(const std::string& spec) {
  namespace fs = std::filesystem;
  if (find_row(sources(), spec.substr(0, spec.find(':')))) return spec;
  std::error_code none;
  if (!is_directory(spec)) return spec;
  for (const auto& entry : fs::directory_iterator(spec, none))
    if (entry.path().extension() == ".tar") return "webdataset:" + spec;
  return "imagefolder:" + spec;
}

Split open_data(const std::string& spec, uint64_t seed) {
  const size_t colon = spec.find(':');
  const std::string kind = spec.substr(0, colon);
  std::string path = colon == std::string::npos ? "" : spec.substr(colon + 1);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (const SourceRow* row = find_row(sources(), kind)) return row->open(path, seed);
  const std::vector<std::string> names = names_of(sources());
  throw BadOption(text("--data ", spec, ": neither a directory nor a kind of data; kinds are ", joined(names),
                       did_you_mean(kind, names)));
}

}  // namespace skein::data
