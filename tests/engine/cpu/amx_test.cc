// The kernels for AMX against plain loops, where the processor has it. Their numbers are exact in bf16, and
// their sums in f32.
#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "engine/cpu/kernels.h"

namespace skein::cpu {
namespace {

// Pairs of multiples of 1/16 in [-1, 1].
std::vector<Cell> pairs(size_t n, unsigned seed) {
  const auto some = [seed](size_t i) {
    return bf16(float(int((i * 37 + seed * 11 + i / 7) % 33) - 16) / 16);
  };
  std::vector<Cell> p(n);
  for (size_t i = 0; i < n; ++i) p[i] = some(2 * i).bits | Cell(some(2 * i + 1).bits) << 16;
  return p;
}
float multiplied(Cell x, Cell y) {
  const auto half = [](Cell c, int i) {
    bf16 b;
    b.bits = uint16_t(c >> 16 * i);
    return float(b);
  };
  return half(x, 0) * half(y, 0) + half(x, 1) * half(y, 1);
}

// Halves at different steps; every third result is not wanted.
void expect_amx_products(const TileKernels& tiles, int64_t upper, int64_t lower, int64_t depth) {
  constexpr int64_t kTap[] = {3, 400}, kStep = 40, kOther = 56;
  const int64_t lanes = tiles.lanes, rows = upper + lower;
  const std::vector<Cell> x = pairs(4000, 19), w = pairs(size_t(2 * depth * lanes), 20);
  std::vector<const Cell*> in;
  for (int64_t i = 0; i < rows; ++i)
    in.push_back(x.data() + (i < upper ? i * kStep : 1000 + (i - upper) * kOther));
  std::vector<float> sums(size_t(rows * lanes), 0.5f), want = sums;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t l = 0; l < lanes; ++l)
      for (int64_t t = 0; t < 2; ++t)
        for (int64_t d = 0; d < depth; ++d)
          want[size_t(i * lanes + l)] +=
              multiplied(in[size_t(i)][kTap[t] + d], w[size_t((t * depth + d) * lanes + l)]);
  TileProduct p{.rows = rows,
                .in = in.data(),
                .tap = kTap,
                .taps = 2,
                .depth = depth,
                .weights = w.data(),
                .sums = sums.data(),
                .sums_step = lanes,
                .add = true,
                .half = upper};
  std::vector<bf16> results(size_t(rows * (lanes + 8)), bf16(0.25f)), none = results;
  std::vector<void*> out;
  for (int64_t i = 0; i < rows; ++i) out.push_back(i % 3 ? &results[size_t(i * (lanes + 8))] : nullptr);
  TileProduct q = p;
  q.out = {.rows = out.data(), .from = 8, .beta = 2};
  tiles.product(q), tiles.complete();
  tiles.product(p);
  amx_kernels()->release();
  EXPECT_EQ(sums, want) << upper << '+' << lower << " rows, depth " << depth << ", lanes " << lanes;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t l = 0; l < lanes + 8; ++l) {
      const bf16 y = results[size_t(i * (lanes + 8) + l)];
      const bf16 expected =
          i % 3 == 0 || l < 8 ? bf16(0.25f) : bf16(want[size_t(i * lanes + l - 8)] + 2 * 0.25f);
      ASSERT_EQ(float(y), float(expected)) << i << ' ' << l;
    }
}

TEST(Amx, MultipliesRowsAtEqualSteps) {
  if (!amx_kernels()) GTEST_SKIP() << "this processor has no AMX";
  for (const TileKernels* tiles : {&amx_kernels()->tiles, &amx_kernels()->slim_tiles})
    for (const int64_t depth : {8, 16, 24, 48})
      for (const auto& [upper, lower] : {std::pair{16, 16}, {16, 3}, {7, 7}, {1, 1}, {9, 0}})
        expect_amx_products(*tiles, upper, lower, depth);
}

// a is shifted by a number of two bytes, as taps shift it.
TEST(Amx, AddsOuterProducts) {
  if (!amx_kernels()) GTEST_SKIP() << "this processor has no AMX";
  constexpr int64_t kDepth = 32, kStep = 50, kSums = 70;
  const std::vector<Cell> x = pairs(40 * kStep, 21), y = pairs(kDepth * 32, 22);
  const auto cell = [&](int64_t row, int64_t k) {
    Cell c;
    std::memcpy(&c, reinterpret_cast<const char*>(x.data() + row * kStep + k) + 2, sizeof c);
    return c;
  };
  for (const int64_t operands : {1, 2})
    for (const int64_t lanes : {16, 32}) {
      std::vector<float> sums(32 * kSums, 0.5f), want = sums;
      for (int64_t i = 0; i < 16 * operands; ++i)
        for (int64_t l = 0; l < lanes; ++l)
          for (int64_t k = 0; k < kDepth; ++k)
            want[size_t(i * kSums + l)] += multiplied(cell(i, k), y[size_t(k * 32 + l)]);
      const bf16* const a = reinterpret_cast<const bf16*>(x.data()) + 1;
      amx_kernels()->outer({.a = {a, a + 2 * 16 * kStep},
                            .b = y.data(),
                            .operands = operands,
                            .lanes = lanes,
                            .depth = kDepth,
                            .a_step = kStep,
                            .b_step = 32,
                            .sums = {sums.data(), sums.data() + 16 * kSums},
                            .sums_step = kSums,
                            .add = true});
      amx_kernels()->release();
      EXPECT_EQ(sums, want) << operands << ' ' << lanes;
    }
}

}  // namespace
}  // namespace skein::cpu
