// Escaping control characters.
#include "apps/base/printable.h"

#include <fmt/format.h>

namespace skein::apps {

namespace {

// U+061C, U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069 reorder what is displayed.
bool reorders(char32_t c) {
  return c == 0x61C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

// The character of two or three bytes of UTF-8 at `at`; 0 if there is none.
char32_t character(const std::string& s, size_t at, size_t bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[at + i]); };
  if (at + bytes > s.size() || (bytes == 2 ? byte(0) >> 5 != 6 : byte(0) >> 4 != 14)) return 0;
  char32_t c = byte(0) & (bytes == 2 ? 0x1F : 0x0F);
  for (size_t i = 1; i < bytes; ++i) {
    if (byte(i) >> 6 != 2) return 0;
    c = c << 6 | (byte(i) & 0x3F);
  }
  return c;
}

std::string escaped(const std::string& s, bool keeps_lines) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    const auto c = static_cast<unsigned char>(s[i]);
    const char32_t two = character(s, i, 2), three = character(s, i, 3);
    const bool layout = c == '\n' || c == '\t';
    if ((c < 0x20 && !(layout && keeps_lines)) || c == 0x7F)
      out += fmt::format("\\x{:02x}", c);
    else if ((two >= 0x80 && two < 0xA0) || reorders(two))
      out += fmt::format("\\u{:04x}", uint32_t(two)), i += 1;
    else if (reorders(three))
      out += fmt::format("\\u{:04x}", uint32_t(three)), i += 2;
    else
      out += s[i];
  }
  return out;
}

}  // namespace

std::string printable(const std::string& s) { return escaped(s, true); }
std::string printable_name(const std::string& s) { return escaped(s, false); }

std::string printable_excerpt(const std::string& s) {
  constexpr size_t kMost = 40;
  std::string out;
  for (const char one : s.substr(0, kMost)) {
    const auto c = static_cast<unsigned char>(one);
    out += c >= 0x20 && c < 0x7F ? std::string(1, one) : fmt::format("\\x{:02x}", c);
  }
  return s.size() > kMost ? out + "..." : out;
}

std::string shell_quoted(const std::string& s) {
  std::string out = "'";
  for (const char c : s) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

std::string shell_word(const std::string& s) {
  const bool plain = s.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                         "-_=./:,@%+") == std::string::npos;
  return plain && !s.empty() ? s : shell_quoted(s);
}

std::string counted(int64_t n, const std::string& thing) {
  return std::to_string(n) + ' ' + thing + (n == 1 ? "" : "s");
}

}  // namespace skein::apps
