// Sealed messages as strings.
#pragma once
#include <optional>
#include <string>

#include "comm/seal/cipher.h"

namespace skein::comm {

// A message, sealed: its bytes, then the tag.
inline std::string sealed(Cipher& c, const std::string& m) {
  std::string out(m.size() + kTagBytes, 0);
  c.seal(m.data(), m.size(), out.data(), out.data() + m.size());
  return out;
}
// The message; empty if it does not open.
inline std::optional<std::string> opened(Cipher& c, std::string s) {
  const size_t n = s.size() - kTagBytes;
  if (!c.open(s.data(), n, s.data() + n)) return {};
  return s.substr(0, n);
}

}  // namespace skein::comm
