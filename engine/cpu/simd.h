// Several floats at a time, in the compiler's own vector types: loads and stores of the floating types. How many is
// a parameter of what is written with them, so that one text serves every width.
#pragma once
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "engine/dtype.h"

namespace skein::cpu {

template <int W>
struct Vectors {
  using Floats [[gnu::vector_size(4 * W)]] = float;
  using Words [[gnu::vector_size(4 * W)]] = uint32_t;
  using Halves [[gnu::vector_size(2 * W)]] = uint16_t;
  using Bytes [[gnu::vector_size(W)]] = uint8_t;
};
using V8 = Vectors<8>::Floats;
using V16 = Vectors<16>::Floats;

template <class V>
inline constexpr int kWidth = int(sizeof(V) / sizeof(float));
template <class V>
using WordsOf = typename Vectors<kWidth<V>>::Words;
template <class V>
using HalvesOf = typename Vectors<kWidth<V>>::Halves;
template <class V>
using BytesOf = typename Vectors<kWidth<V>>::Bytes;

inline constexpr unsigned short kAll =
    0xFFFF;  // the mask of every lane; g++ 12 warns of intrinsics without one

// Loads and stores need no alignment.
template <class X>
[[gnu::always_inline]] inline X load_bits(const void* p) {
  X x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}

template <class V>
[[gnu::always_inline]] inline V splat(float x) {
  return x - V{};
}
template <class V>
[[gnu::always_inline]] inline V load(const float* p) {
  return load_bits<V>(p);
}
template <class V>
[[gnu::always_inline]] inline V load(const bf16* p) {
#ifdef __x86_64__  // g++ 12 would go by way of two halves
  if constexpr (kWidth<V> == 8)
    return V(WordsOf<V>(_mm256_cvtepu16_epi32(load_bits<__m128i>(p))) << 16);
  else if constexpr (kWidth<V> == 16)
    return V(WordsOf<V>(_mm512_maskz_cvtepu16_epi32(kAll, load_bits<__m256i>(p))) << 16);
  else
#endif
    return V(__builtin_convertvector(load_bits<HalvesOf<V>>(p), WordsOf<V>) << 16);
}
template <class V>
[[gnu::always_inline]] inline V load(const f16* p) {
#ifdef __x86_64__
  if constexpr (kWidth<V> == 8) return V(_mm256_cvtph_ps(load_bits<__m128i>(p)));
  if constexpr (kWidth<V> == 16) return V(_mm512_maskz_cvtph_ps(kAll, load_bits<__m256i>(p)));
#endif
  V x;
  for (int i = 0; i < kWidth<V>; ++i) x[i] = float(p[i]);
  return x;
}

template <class V>
[[gnu::always_inline]] inline void store(float* p, V x) {
  __builtin_memcpy(p, &x, sizeof x);
}
template <class V>
[[gnu::always_inline]] inline void store(bf16* p, V x) {  // rounds as bf16(float) does
  using Words = WordsOf<V>;
  const Words u = Words(x);
  const Words rounded = u + 0x7FFF + ((u >> 16) & 1);
  const Words kept = x == x ? rounded : (u | 0x400000);
#ifdef __x86_64__
  if constexpr (kWidth<V> == 16) {
    const __m256i half = _mm512_maskz_cvtepi32_epi16(kAll, __m512i(kept >> 16));
    __builtin_memcpy(p, &half, sizeof half);
    return;
  }
#endif
  const HalvesOf<V> half = __builtin_convertvector(kept >> 16, HalvesOf<V>);
  __builtin_memcpy(p, &half, sizeof half);
}
template <class V>
[[gnu::always_inline]] inline void store(f16* p, V x) {  // rounds as f16(float) does
#ifdef __x86_64__
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT;
  if constexpr (kWidth<V> == 8) {
    const __m128i half = _mm256_cvtps_ph(__m256(x), kNearest);
    __builtin_memcpy(p, &half, sizeof half);
  } else if constexpr (kWidth<V> == 16) {
    const __m256i half = _mm512_maskz_cvtps_ph(kAll, __m512(x), kNearest);
    __builtin_memcpy(p, &half, sizeof half);
  } else
#endif
    for (int i = 0; i < kWidth<V>; ++i) p[i] = f16(x[i]);
}

inline V8 load8(const float* p) { return load<V8>(p); }
inline V8 load8(const bf16* p) { return load<V8>(p); }
inline V8 load8(const f16* p) { return load<V8>(p); }
template <class T>
inline void store8(T* p, V8 x) {
  store(p, x);
}

}  // namespace skein::cpu
