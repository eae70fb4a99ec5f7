// Escaping control characters.
#include "apps/base/printable.h"

#include <fmt/format.h>

namespace skein::apps {

std::string printable(const std::string& s) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    const auto c = static_cast<unsigned char>(s[i]);
    const auto next = i + 1 < s.size() ? static_cast<unsigned char>(s[i + 1]) : 0;
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F)
      out += fmt::format("\\x{:02x}", c);
    else if (c == 0xC2 && next >= 0x80 && next < 0xA0)
      out += fmt::format("\\u{:04x}", next), ++i;
    else
      out += s[i];
  }
  return out;
}

}  // namespace skein::apps
