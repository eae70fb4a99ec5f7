// split(): the parts of a text between marks.
#pragma once
#include <string>
#include <vector>

namespace skein {

// Of "a,,b" three parts, of "" one.
inline std::vector<std::string> split(const std::string& s, char at) {
  std::vector<std::string> parts(1);
  for (const char c : s) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

}  // namespace skein
