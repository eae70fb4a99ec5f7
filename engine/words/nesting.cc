// Looks for brackets and dots outside strings, by the rules of TOML, which include those of JSON.
#include "engine/words/nesting.h"

#include <algorithm>

namespace skein {
namespace {

// The last byte of the string that begins at `at`; the text's last one if it does not end.
size_t end_of_string(std::string_view s, size_t at) {
  const char quote = s[at];
  const bool has_escapes = quote == '"';
  const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
  const bool lines = s.substr(at, 3) == three;
  for (size_t i = at + (lines ? 3 : 1); i < s.size(); ++i) {
    if (has_escapes && s[i] == '\\')
      ++i;
    else if (s[i] == quote && !lines)
      return i;
    else if (s[i] == quote && s.substr(i, 3) == three) {
      // One or two quotes before the last three belong to the text.
      size_t last = i + 2;
      for (int more = 0; more < 2 && last + 1 < s.size() && s[last + 1] == quote; ++more) ++last;
      return last;
    }
  }
  return s.size() - 1;
}

}  // namespace

bool nested_too_deeply(std::string_view s) {
  int depth = 0, parts = 0;
  for (size_t i = 0; i < s.size(); ++i) switch (s[i]) {
      case '"':
      case '\'':
        i = end_of_string(s, i);
        break;
      case '#':
        i = std::min(s.find('\n', i), s.size()) - 1;
        break;
      case '[':
      case '{':
        parts = 0;
        if (++depth > kMostLevels) return true;
        break;
      case ']':
      case '}':
        depth = std::max(depth - 1, 0);
        break;
      case '.':
        if (++parts > kMostLevels) return true;
        break;
      case '=':
      case ',':
      case '\n':
        parts = 0;
        break;
    }
  return false;
}

}  // namespace skein
