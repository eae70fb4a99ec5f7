// Eight floats at a time, in the compiler's own vector types: loads and stores of the floating types.
#pragma once
#include "engine/dtype.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace skein::cpu {

using V8 = float __attribute__((vector_size(32)));
using V8Anywhere = float __attribute__((vector_size(32), aligned(4), may_alias));
using U8x32 = uint32_t __attribute__((vector_size(32)));
using U8x16 = uint16_t __attribute__((vector_size(16)));
using U8x16Anywhere = uint16_t __attribute__((vector_size(16), aligned(2), may_alias));

inline V8 splat(float x) { return V8{x, x, x, x, x, x, x, x}; }
inline V8 load8(const float* p) { return *reinterpret_cast<const V8Anywhere*>(p); }
inline V8 load8(const bf16* p) {
  const U8x16 half = *reinterpret_cast<const U8x16Anywhere*>(p);
  return V8(__builtin_convertvector(half, U8x32) << 16);
}
inline V8 load8(const f16* p) {
#ifdef __F16C__
  return V8(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  V8 x;
  for (int i = 0; i < 8; ++i) x[i] = float(p[i]);
  return x;
#endif
}
inline void store8(float* p, V8 x) { *reinterpret_cast<V8Anywhere*>(p) = x; }
inline void store8(bf16* p, V8 x) {  // rounds as bf16(float) does
  const U8x32 u = U8x32(x);
  const U8x32 rounded = u + 0x7FFF + ((u >> 16) & 1);
  const U8x32 kept = x == x ? rounded : (u | 0x400000);
  *reinterpret_cast<U8x16Anywhere*>(p) = __builtin_convertvector(kept >> 16, U8x16);
}
inline void store8(f16* p, V8 x) {  // rounds as f16(float) does
#ifdef __F16C__
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(__m256(x), _MM_FROUND_TO_NEAREST_INT));
#else
  for (int i = 0; i < 8; ++i) p[i] = f16(x[i]);
#endif
}

}  // namespace skein::cpu
