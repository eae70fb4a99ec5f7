// did_you_mean(): the valid name a mistyped one was meant to be.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace skein {

// Fewest insertions, deletions, replacements and swaps of neighbors that turn a into b.
inline int edit_distance(const std::string& a, const std::string& b) {
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = int(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = int(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// The first of the closest names in `valid`; empty if none is close. A name is close if it begins with
// `given`, or differs from it by at most one edit in every three letters.
inline std::string nearest(const std::string& given, const std::vector<std::string>& valid) {
  std::string best;
  int least = std::min(int(given.size()) / 3, 3) + 1;
  for (const std::string& name : valid) {
    const int longer = int(name.size()) - int(given.size());  // each letter more or less is an edit
    if (longer >= least || -longer >= least) continue;
    if (const int d = edit_distance(given, name); d < least) best = name, least = d;
  }
  if (best.empty() && given.size() >= 3)
    for (const std::string& name : valid)
      if (best.empty() && name.starts_with(given)) best = name;
  return best;
}

// "; did you mean X?", or nothing if no name is close.
inline std::string did_you_mean(const std::string& given, const std::vector<std::string>& valid) {
  const std::string name = nearest(given, valid);
  return name.empty() ? "" : "; did you mean " + name + "?";
}

}  // namespace skein
