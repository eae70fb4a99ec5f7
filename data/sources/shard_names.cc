// Expands braces and wildcards in the names of shards.
#include <glob.h>

#include <algorithm>
#include <cstdio>

#include "data/files.h"
#include "data/sources/shards.h"
#include "engine/words/number.h"

namespace skein::data {
namespace {

constexpr int64_t kMostShards = 1'000'000;

// Expands what is inside braces: "000..146" or "a,b".
std::vector<std::string> alternatives(const std::string& inside) {
  std::vector<std::string> all;
  if (const size_t dots = inside.find(".."); dots != std::string::npos) {
    const std::string first = inside.substr(0, dots), last = inside.substr(dots + 2);
    const int64_t from = number_in<int64_t>(first).value_or(-1), to = number_in<int64_t>(last).value_or(-1);
    if (from < 0 || to < from || to - from >= kMostShards)
      throw BadOption("--data webdataset: {" + inside +
                      "} is not a range; expected {FIRST..LAST}, like {000..146}");
    for (int64_t n = from; n <= to; ++n) {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%0*lld", int(std::min<size_t>(first.size(), 18)),
                    static_cast<long long>(n));
      all.push_back(digits);
    }
    return all;
  }
  for (size_t at = 0;;) {
    const size_t comma = inside.find(',', at);
    all.push_back(inside.substr(at, comma == std::string::npos ? comma : comma - at));
    if (comma == std::string::npos) return all;
    at = comma + 1;
  }
}

std::vector<std::string> expand_braces(const std::string& pattern) {
  const size_t open = pattern.find('{');
  if (open == std::string::npos) return {pattern};
  const size_t close = pattern.find('}', open);
  if (close == std::string::npos) throw BadOption("--data webdataset: " + pattern + " has a { without a }");
  std::vector<std::string> all;
  const std::vector<std::string> tails = expand_braces(pattern.substr(close + 1)),
                                 heads = alternatives(pattern.substr(open + 1, close - open - 1));
  if (heads.size() * tails.size() > size_t(kMostShards))
    throw BadOption(text("--data webdataset: ", pattern, " names ", heads.size() * tails.size(),
                         " shards, more than there can be"));
  for (const std::string& a : heads)
    for (const std::string& tail : tails) all.push_back(pattern.substr(0, open) + a + tail);
  return all;
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> all;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    all.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return all;
}

}  // namespace

std::vector<std::string> expand_shards(const std::string& pattern) {
  std::vector<std::string> all;
  const std::vector<std::string> names = expand_braces(pattern);
  for (const std::string& name : names) {
    if (name.find_first_of("*?[") == std::string::npos || is_file(name)) {
      if (!is_file(name))
        throw BadFile(name + ": no such file" +
                      (names.size() > 1 ? text(", one of the ", names.size(), " shards of ", pattern) : "") +
                      "; expected tar files");
      all.push_back(name);
      continue;
    }
    const std::vector<std::string> some = matches(name);
    if (some.empty()) throw BadFile(name + ": no shards match; expected tar files, as in /data/train-*.tar");
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace skein::data
