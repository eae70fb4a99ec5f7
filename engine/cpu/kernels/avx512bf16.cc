// Kernels for AVX-512 with bf16: tiles with two products and their sum in each of 16 lanes of an instruction;
// and all that round to bf16.
#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "engine/cpu/kernels/widths.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

#if defined(__x86_64__) && !defined(__clang__)  // clang does not know the pragma
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16")
#include "engine/cpu/kernels/grouped.h"
#include "engine/cpu/kernels/norm.h"
#include "engine/cpu/kernels/pack.h"
#include "engine/cpu/kernels/pool.h"
#include "engine/cpu/kernels/tile.h"

namespace skein::cpu {
namespace {

struct Pairs {
  using Sums = V16;
  static constexpr int kElements = 2;
  static __m512bh operand(WordsOf<V16> cells) { return __m512bh(cells); }
  static __m512bh lanes(const Cell* p) { return load_bits<__m512bh>(p); }
  static __m512bh spread(const Cell* p) { return __m512bh(_mm512_set1_epi32(load_bits<int>(p))); }
  static V16 multiplied(V16 sum, __m512bh x, __m512bh y) { return V16(_mm512_dpbf16_ps(__m512(sum), x, y)); }
  using Out = bf16;  // Rounded as bf16(float) rounds, but for numbers below 2^-126, which become 0.
  static void put(bf16* p, const V16 (&v)[2], bool past_caches) {
    const __m512bh both = _mm512_cvtne2ps_pbh(__m512(v[1]), __m512(v[0]));
    if (past_caches)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(p), __m512i(both));
    else
      __builtin_memcpy(p, &both, sizeof both);
  }
  static void put(bf16* p, const V16 (&v)[1], bool) {
    const __m256bh one = _mm512_cvtneps_pbh(__m512(v[0]));
    __builtin_memcpy(p, &one, sizeof one);
  }
};

// bf16 that the processor rounds to, as Pairs do, in one instruction in place of seven.
struct Rounded : bf16 {
  using bf16::bf16;
};
template <class V>
[[gnu::always_inline]] inline V load(const Rounded* p) {
  return cpu::load<V>(static_cast<const bf16*>(p));
}
[[gnu::always_inline]] inline void store(Rounded* p, V16 x) {
  const __m256bh bits = _mm512_cvtneps_pbh(__m512(x));
  __builtin_memcpy(p, &bits, sizeof bits);
}
[[gnu::always_inline]] inline void stream(Rounded* p, V16 x) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), __m256i(_mm512_cvtneps_pbh(__m512(x))));
}

}  // namespace

constinit const RoundingKernels kRounding16 = {norm_kernels<V16, Rounded>(), pool_kernels<V16, Rounded>(),
                                               tile_finish<V16, Rounded>, blend_elements<V16, Rounded>};
constinit const PairKernels kPairs16 = {tile_kernels<Pairs, 12, 2>(), tile_kernels<Pairs, 12, 1>(),
                                        grouped_kernels<Pairs>()};

}  // namespace skein::cpu
#pragma GCC pop_options
#endif
