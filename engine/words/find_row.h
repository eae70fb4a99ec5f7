// Finds rows of tables and words of flags by the names that users give.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "engine/base.h"
#include "engine/words/nearest.h"

namespace skein {

// Names have hyphens on the command line and underscores in C++.
inline std::string hyphens(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// "a, b, c"; with " and " for the last separator "a, b and c".
inline std::string joined(const std::vector<std::string>& names, const std::string& between = ", ",
                          const std::string& last = "") {
  std::string all;
  for (size_t i = 0; i < names.size(); ++i)
    all += (i == 0 ? "" : i + 1 == names.size() && !last.empty() ? last : between) + names[i];
  return all;
}

template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(row.name);
  return names;
}

// The row with exactly this name; null if there is none.
template <class Rows>
auto find_row(const Rows& rows, const std::string& name) -> decltype(&*std::begin(rows)) {
  for (const auto& row : rows)
    if (name == row.name) return &row;
  return nullptr;
}

// The value that a flag's word stands for. Throws BadOption with the words that are allowed.
template <class T>
T one_of(const std::string& flag, const std::string& word,
         std::initializer_list<std::pair<const char*, T>> choices) {
  std::vector<std::string> words;
  for (const auto& [name, value] : choices) {
    if (word == name) return value;
    words.push_back(name);
  }
  throw BadOption(
      text(flag, ' ', word, ": allowed are ", joined(words, ", ", " and "), did_you_mean(word, words)));
}

}  // namespace skein
