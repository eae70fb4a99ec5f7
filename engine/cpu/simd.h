// Several floats at a time, in the compiler's own vector types: loads and stores of the floating types. How
// many is a parameter of what is written with them, so that one text serves every width.
#pragma once
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <type_traits>

#include "engine/dtype.h"

namespace skein::cpu {

template <int W>
struct Vectors {
  using Floats [[gnu::vector_size(4 * W)]] = float;
  using Words [[gnu::vector_size(4 * W)]] = uint32_t;
  using Halves [[gnu::vector_size(2 * W)]] = uint16_t;
  using Bytes [[gnu::vector_size(W)]] = uint8_t;
};
using V4 = Vectors<4>::Floats;
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
[[gnu::always_inline]] inline WordsOf<V> load_bits_of(const bf16* p) {
#ifdef __x86_64__  // g++ 12 would go by way of two halves
  if constexpr (kWidth<V> == 8) return WordsOf<V>(_mm256_cvtepu16_epi32(load_bits<__m128i>(p)));
  if constexpr (kWidth<V> == 16) return WordsOf<V>(_mm512_maskz_cvtepu16_epi32(kAll, load_bits<__m256i>(p)));
#endif
  return __builtin_convertvector(load_bits<HalvesOf<V>>(p), WordsOf<V>);
}
template <class V>
[[gnu::always_inline]] inline V load(const bf16* p) {
  return V(load_bits_of<V>(p) << 16);
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

// Bytes as words, and words below 256 as bytes; g++ 12 would take them one by one.
template <class V>
[[gnu::always_inline]] inline WordsOf<V> load_bytes_of(const uint8_t* p) {
#ifdef __x86_64__
  if constexpr (kWidth<V> == 8)
    return WordsOf<V>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  if constexpr (kWidth<V> == 16) return WordsOf<V>(_mm512_maskz_cvtepu8_epi32(kAll, load_bits<__m128i>(p)));
#endif
  return __builtin_convertvector(load_bits<BytesOf<V>>(p), WordsOf<V>);
}
template <class V>
[[gnu::always_inline]] inline void store_bytes_of(uint8_t* p, WordsOf<V> x) {
#ifdef __x86_64__
  if constexpr (kWidth<V> == 8) {
    const __m256i all = __m256i(x);
    const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    return _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(halves, halves));
  }
  if constexpr (kWidth<V> == 16)
    return _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_maskz_cvtepi32_epi8(kAll, __m512i(x)));
#endif
  const BytesOf<V> bytes = __builtin_convertvector(x, BytesOf<V>);
  __builtin_memcpy(p, &bytes, sizeof bytes);
}

// How a vector lies in memory as T, rounded as T(float) rounds.
template <class T, class V>
[[gnu::always_inline]] inline auto as(V x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else if constexpr (std::is_same_v<T, bf16>) {
    using Words = WordsOf<V>;
    const Words u = Words(x);
    const Words rounded = u + 0x7FFF + ((u >> 16) & 1);
    const Words kept = x == x ? rounded : (u | 0x400000);
#ifdef __x86_64__
    if constexpr (kWidth<V> == 16) return HalvesOf<V>(_mm512_maskz_cvtepi32_epi16(kAll, __m512i(kept >> 16)));
#endif
    return __builtin_convertvector(kept >> 16, HalvesOf<V>);
  } else {
#ifdef __x86_64__
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT;
    if constexpr (kWidth<V> == 8) return HalvesOf<V>(_mm256_cvtps_ph(__m256(x), kNearest));
    if constexpr (kWidth<V> == 16) return HalvesOf<V>(_mm512_maskz_cvtps_ph(kAll, __m512(x), kNearest));
#endif
    HalvesOf<V> half;
    for (int i = 0; i < kWidth<V>; ++i) half[i] = f16(x[i]).bits;
    return half;
  }
}

template <class V, class T>
[[gnu::always_inline]] inline void store(T* p, V x) {
  const auto bits = as<T>(x);
  __builtin_memcpy(p, &bits, sizeof bits);
}
// The same past the caches, to an address that is a multiple of the vector's size in memory. fence_streams()
// makes it visible to other threads.
template <class V, class T>
[[gnu::always_inline]] inline void stream(T* p, V x) {
#ifdef __x86_64__
  const auto bits = as<T>(x);
  if constexpr (sizeof bits == 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(p), __m512i(bits));
  else if constexpr (sizeof bits == 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), __m256i(bits));
  else if constexpr (sizeof bits == 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(p), __m128i(bits));
  else
    store(p, x);
#else
  store(p, x);
#endif
}
template <class V>
inline void fence_streams() {
#ifdef __x86_64__
  _mm_sfence();
#endif
}

inline V8 load8(const float* p) { return load<V8>(p); }
inline V8 load8(const bf16* p) { return load<V8>(p); }
inline V8 load8(const f16* p) { return load<V8>(p); }
template <class T>
inline void store8(T* p, V8 x) {
  store(p, x);
}

}  // namespace skein::cpu
