// Element types: their sizes, names and the two 16-bit floats with their conversions.
#pragma once
#include <cstring>

#include "engine/base.h"

namespace skein {

enum class DType : uint8_t { kF32, kBF16, kU8, kI32, kI64 };
inline constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16, kU8 = DType::kU8, kI32 = DType::kI32,
                       kI64 = DType::kI64;

// The upper half of a float. Stored, never computed with: operators convert to float first.
struct bf16 {
  uint16_t bits;
  bf16() = default;
  HD bf16(float f) {  // round to nearest even; a NaN stays a (quiet) NaN
    uint32_t u;
    memcpy(&u, &f, 4);
    const uint32_t rounded = (u + 0x7FFF + ((u >> 16) & 1)) >> 16;
    bits = uint16_t((u & 0x7FFFFFFF) > 0x7F800000 ? (u >> 16) | 0x40 : rounded);
  }
  HD operator float() const {
    const uint32_t u = uint32_t(bits) << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
  }
};

template <class T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr DType value = kF32;
};
template <>
struct dtype_of<bf16> {
  static constexpr DType value = kBF16;
};
template <>
struct dtype_of<uint8_t> {
  static constexpr DType value = kU8;
};
template <>
struct dtype_of<int32_t> {
  static constexpr DType value = kI32;
};
template <>
struct dtype_of<int64_t> {
  static constexpr DType value = kI64;
};

constexpr int64_t size_of(DType t) { return t == kF32 || t == kI32 ? 4 : t == kBF16 ? 2 : t == kU8 ? 1 : 8; }
constexpr const char* name_of(DType t) {
  return t == kF32 ? "f32" : t == kBF16 ? "bf16" : t == kU8 ? "u8" : t == kI32 ? "i32" : "i64";
}
inline std::ostream& operator<<(std::ostream& s, DType t) { return s << name_of(t); }

// Calls f with a value of the C++ type that a floating dtype stands for: f(float{}) or f(bf16{}).
template <class F>
decltype(auto) visit_float(DType t, F&& f) {
  CHECK(t == kF32 || t == kBF16, "a floating type is needed, not", t);
  if (t == kBF16) return f(bf16{});
  return f(float{});
}

}  // namespace skein
