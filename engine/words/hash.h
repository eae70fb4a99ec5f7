// FNV-1a: a quick hash that is the same on every machine, for tags, file names
// and checksums against accidents.
#pragma once
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace skein {

template <class Word>  // uint32_t or uint64_t
class Fnv {
 public:
  template <std::integral T>
  Fnv& add(T number) {  // hashes its bytes, the lowest first
    for (size_t i = 0; i < sizeof(T); ++i) add_byte(uint8_t(uint64_t(number) >> (8 * i)));
    return *this;
  }
  Fnv& add(std::string_view bytes) {
    for (const char c : bytes) add_byte(uint8_t(c));
    return *this;
  }
  Word value() const { return value_; }

 private:
  static constexpr bool kWide = sizeof(Word) == 8;
  void add_byte(uint8_t b) { value_ = (value_ ^ b) * Word(kWide ? 0x100000001B3u : 0x1000193u); }
  Word value_ = Word(kWide ? 0xCBF29CE484222325u : 0x811C9DC5u);
};

// The 64-bit hash as 16 hexadecimal digits.
inline std::string fingerprint(std::string_view bytes) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(Fnv<uint64_t>().add(bytes).value()));
  return digits;
}

}  // namespace skein
