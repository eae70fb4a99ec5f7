// Element types: their sizes, names and the two 16-bit floats with their conversions.
#pragma once
#include <cstring>

#include "engine/base.h"

namespace skein {

enum class DType : uint8_t { kF32, kBF16, kU8, kI32, kI64, kF16 };  // travels in headers: append only
inline constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16, kF16 = DType::kF16, kU8 = DType::kU8,
                       kI32 = DType::kI32, kI64 = DType::kI64;
inline constexpr uint8_t kDTypes = 6;  // how many there are

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

// IEEE binary16: 5 bits of exponent, 10 of mantissa; largest 65504, smallest normal 2^-14, smallest 2^-24.
// Like bf16 it is only stored, never computed with. The host's conversions have no branches, so that loops
// over them vectorize; they agree bit for bit with F16C's and the device's, except for a NaN's payload.
struct f16 {
  uint16_t bits;
  f16() = default;
  HD f16(float f) {  // round to nearest even, 65520 and above to infinity; a NaN stays a (quiet) NaN
#ifdef __CUDA_ARCH__
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(f));
#else
    uint32_t u, small;
    memcpy(&u, &f, 4);
    const uint32_t a = u & 0x7FFFFFFF;
    float shifted;  // |f| + 0.5: the sum's last bit is worth 2^-24, the step of subnormals
    memcpy(&shifted, &a, 4);
    shifted += 0.5f;
    memcpy(&small, &shifted, 4);
    const uint32_t normal = (a - (112u << 23) + 0xFFF + ((a >> 13) & 1)) >> 13;
    uint32_t h = a < 0x38800000 ? small - 0x3F000000 : normal;
    h = a < 0x477FF000 ? h : 0x7C00;
    h = a > 0x7F800000 ? 0x7E00 | ((a >> 13) & 0x3FF) : h;
    bits = uint16_t(h | ((u >> 16) & 0x8000));
#endif
  }
  HD operator float() const {
    float f;
#ifdef __CUDA_ARCH__
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits));
#else
    const uint32_t e = bits & 0x7C00, shifted = uint32_t(bits & 0x7FFF) << 13;
    uint32_t u = shifted + (112u << 23);
    u = e == 0x7C00 ? shifted | 0x7F800000 : u;
    const uint32_t offset = shifted + (113u << 23);  // a subnormal's mantissa behind 2^-14, taken off again
    float low;
    memcpy(&low, &offset, 4);
    low -= 6.103515625e-05f;
    uint32_t low_bits;
    memcpy(&low_bits, &low, 4);
    u = (e == 0 ? low_bits : u) | (uint32_t(bits & 0x8000) << 16);
    memcpy(&f, &u, 4);
#endif
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
struct dtype_of<f16> {
  static constexpr DType value = kF16;
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

constexpr bool is_float(DType t) { return t == kF32 || t == kBF16 || t == kF16; }
constexpr int64_t size_of(DType t) {
  return t == kF32 || t == kI32 ? 4 : t == kBF16 || t == kF16 ? 2 : t == kU8 ? 1 : 8;
}
constexpr const char* name_of(DType t) {
  constexpr const char* kNames[kDTypes] = {"f32", "bf16", "u8", "i32", "i64", "f16"};
  return uint8_t(t) < kDTypes ? kNames[size_t(t)] : "unknown";
}
inline std::ostream& operator<<(std::ostream& s, DType t) { return s << name_of(t); }

// Calls f with a value of the C++ type that a floating dtype stands for: f(float{}), f(bf16{}) or f(f16{}).
template <class F>
decltype(auto) visit_float(DType t, F&& f) {
  CHECK(is_float(t), "a floating type is needed, not", t);
  if (t == kBF16) return f(bf16{});
  if (t == kF16) return f(f16{});
  return f(float{});
}

}  // namespace skein
