// The tiles for AMX: registers of 16 rows of 16 sums. One instruction multiplies 16 rows by 16 columns of 16
// pairs of bf16. Numbers below 2^-126 count as 0.
#include <type_traits>

#include "engine/cpu/kernels/widths.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

#if defined(__x86_64__) && !defined(__clang__)  // clang does not know the pragma
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")
#include "engine/cpu/simd.h"

namespace skein::cpu {
namespace {

constexpr int64_t kSide = 16;  // rows of a register, cells of a row, columns of sums

// The shapes of the registers, as LDTILECFG reads them.
struct alignas(64) Shapes {
  uint8_t palette = 1, start = 0, none[14] = {};
  uint16_t bytes[16] = {};  // of a row
  uint8_t rows[16] = {};
};

thread_local int64_t shaped = 0;  // what this thread's registers are shaped for

// Sums in registers 0 to 3, of `upper` rows in the first two and `lower` in the others; a in 4 and 5, `depth`
// cells deep; b in 6 and 7.
void shape(int64_t upper, int64_t lower, int64_t depth) {
  const int64_t wanted = upper | lower << 8 | depth << 16;
  if (shaped == wanted) return;
  Shapes s;
  const auto set = [&](int i, int64_t rows, int64_t cells) {
    s.rows[i] = uint8_t(rows), s.bytes[i] = uint16_t(4 * cells);
  };
  set(0, upper, kSide), set(1, upper, kSide), set(2, lower, kSide), set(3, lower, kSide);
  set(4, upper, depth), set(5, lower, depth), set(6, depth, kSide), set(7, depth, kSide);
  asm volatile("ldtilecfg %0" : : "m"(s));
  shaped = wanted;
}

void release() {
  if (shaped) _tile_release();
  shaped = 0;
}

void clear_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// The deepest parts of equal depth that registers hold.
int64_t part_of(int64_t depth) {
  int64_t part = kSide;
  while (depth % part) --part;
  return part;
}

// Bytes from a row to the next; of a single row it does not matter.
int64_t step_of(const Cell* const* in, int64_t rows) { return rows > 1 ? 4 * (in[1] - in[0]) : 64; }

// Rounded as bf16(float) rounds, but for numbers below 2^-126, which become 0.
template <int N, bool kAdds, bool kPastCaches>
void put_rows(const TileProduct& t, const float* sums) {
  for (int64_t i = 0; i < t.rows; ++i, sums += N * kSide) {
    if (!t.out.rows[i]) continue;
    bf16* const y = static_cast<bf16*>(t.out.rows[i]) + t.out.from;
    V16 v[2] = {};
    for (int j = 0; j < N; ++j) {
      v[j] = load<V16>(sums + kSide * j);
      if (kAdds) v[j] += t.out.beta * load<V16>(y + kSide * j);
    }
    const __m512bh both = _mm512_cvtne2ps_pbh(__m512(v[1]), __m512(v[0]));
    if (kPastCaches)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(y), __m512i(both));
    else
      __builtin_memcpy(y, &both, 32 * N);
  }
}
template <int N>
void put(const TileProduct& t, const float* sums) {
  if (t.out.beta != 0) return put_rows<N, true, false>(t, sums);
  N == 2 && t.out.past_caches ? put_rows<N, false, N == 2>(t, sums) : put_rows<N, false, false>(t, sums);
}

// Results are written while the next product is computed: what registers stored cannot be read before all
// earlier stores are done.
struct Late {
  alignas(64) float sums[2][2 * kSide * 2 * kSide];
  int current = 0;  // whose sums the next product takes
  bool waits = false;
  TileProduct product;
};
thread_local Late late;

template <int N>
void write_late() {
  if (late.waits) put<N>(late.product, late.sums[late.current ^ 1]);
  late.waits = false;
}

template <int N>
void product(const TileProduct& t) {
  const int64_t lower = t.rows - t.half, depth = part_of(t.depth), lanes = kSide * N;
  const int64_t steps[] = {step_of(t.in, t.half), step_of(t.in + t.half, lower)};
  shape(t.half, lower ? lower : t.half, depth);
  if (t.add) {
    const float* sums = t.sums + t.half * t.sums_step;
    _tile_loadd(0, t.sums, 4 * t.sums_step);
    if (N == 2) _tile_loadd(1, t.sums + kSide, 4 * t.sums_step);
    if (lower) _tile_loadd(2, sums, 4 * t.sums_step);
    if (N == 2 && lower) _tile_loadd(3, sums + kSide, 4 * t.sums_step);
  } else {
    clear_sums();
  }
  const Cell* b = t.weights;
  for (int64_t tap = 0; tap < t.taps; ++tap) {
    const Cell *a = t.in[0] + t.tap[tap], *a2 = lower ? t.in[t.half] + t.tap[tap] : a;
    for (int64_t k = 0; k < t.depth; k += depth, b += depth * lanes) {
      _tile_loadd(6, b, 4 * lanes);
      if (N == 2) _tile_loadd(7, b + kSide, 4 * lanes);
      _tile_loadd(4, a + k, steps[0]);
      _tile_dpbf16ps(0, 4, 6);
      if (N == 2) _tile_dpbf16ps(1, 4, 7);
      if (!lower) continue;
      _tile_loadd(5, a2 + k, steps[1]);
      _tile_dpbf16ps(2, 5, 6);
      if (N == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
  write_late<N>();
  float* const sums = t.out.rows ? late.sums[late.current] : t.sums;
  const int64_t step = t.out.rows ? lanes : t.sums_step;
  _tile_stored(0, sums, 4 * step);
  if (N == 2) _tile_stored(1, sums + kSide, 4 * step);
  if (lower) _tile_stored(2, sums + t.half * step, 4 * step);
  if (N == 2 && lower) _tile_stored(3, sums + t.half * step + kSide, 4 * step);
  if (!t.out.rows) return;
  late.product = t, late.waits = true, late.current ^= 1;
}

void outer(const AmxOuter& o) {
  shape(kSide, kSide, kSide);
  const bool wide = o.lanes > kSide, two = o.operands > 1;
  const int64_t step = 4 * o.sums_step;
  if (o.add) {
    _tile_loadd(0, o.sums[0], step);
    if (wide) _tile_loadd(1, o.sums[0] + kSide, step);
    if (two) _tile_loadd(2, o.sums[1], step);
    if (two && wide) _tile_loadd(3, o.sums[1] + kSide, step);
  } else {
    clear_sums();
  }
  for (int64_t k = 0; k < o.depth; k += kSide) {
    const Cell* b = o.b + k * o.b_step;
    _tile_loadd(4, static_cast<const char*>(o.a[0]) + 4 * k, 4 * o.a_step);
    _tile_loadd(6, b, 4 * o.b_step);
    _tile_dpbf16ps(0, 4, 6);
    if (wide) {
      _tile_loadd(7, b + kSide, 4 * o.b_step);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (!two) continue;
    _tile_loadd(5, static_cast<const char*>(o.a[1]) + 4 * k, 4 * o.a_step);
    _tile_dpbf16ps(2, 5, 6);
    if (wide) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, o.sums[0], step);
  if (wide) _tile_stored(1, o.sums[0] + kSide, step);
  if (two) _tile_stored(2, o.sums[1], step);
  if (two && wide) _tile_stored(3, o.sums[1] + kSide, step);
}

// `cells` are 16 of each of two a, then of each of two b, every row the same.
void most(const Cell* cells, int64_t times) {
  shape(kSide, kSide, kSide);
  clear_sums();
  for (int64_t k = 0; k < times; k += kSide) {
    _tile_loadd(4, cells, 0);
    _tile_loadd(5, cells + kSide, 0);
    _tile_loadd(6, cells + 2 * kSide, 0);
    _tile_loadd(7, cells + 3 * kSide, 0);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  release();
}

template <int N>
constexpr TileKernels tiles_of() {
  return {2 * kSide, N * kSide, kSide, kBF16, product<N>, write_late<N>, {}, most};
}

}  // namespace

constinit const AmxKernels kAmx16 = {tiles_of<2>(), tiles_of<1>(), outer, release};

}  // namespace skein::cpu
#pragma GCC pop_options
#endif
