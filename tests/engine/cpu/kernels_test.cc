// The kernels of every width against plain loops. Their numbers are small multiples of powers of two, so that
// sums are exact in any order. It includes only what tests/aarch64 compiles for another processor, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/cpu/kernels.h"
#include "engine/cpu/kernels/widths.h"

namespace skein::cpu {
namespace {

std::vector<const Kernels*> tables() { return {&kKernels4, &kKernels8, &kernels()}; }

// Multiples of 1/16 in [-1, 1].
std::vector<float> some(size_t n, unsigned seed) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = float(int((i * 37 + seed * 11 + i / 7) % 33) - 16) / 16;
  return v;
}
const Cell* cells(const std::vector<float>& v) { return reinterpret_cast<const Cell*>(v.data()); }

TEST(Kernels, TransposeCells) {
  constexpr int64_t kRows = 21, kColumns = 19, kLanes = 32;
  const std::vector<float> from = some(kRows * kColumns, 1);
  for (const Kernels* k : tables()) {
    std::vector<float> to(kColumns * kLanes, 9);
    k->transpose(reinterpret_cast<Cell*>(to.data()), kLanes, cells(from), kRows, kColumns);
    for (int64_t c = 0; c < kColumns; ++c)
      for (int64_t r = 0; r < kLanes; ++r)
        ASSERT_EQ(to[size_t(c * kLanes + r)], r < kRows ? from[size_t(r * kColumns + c)] : 0) << k->width;
  }
}

void expect_products(const TileKernels& tiles, int rows) {
  constexpr int64_t kDepth = 5, kTaps = 2, kStep = 7;
  const int64_t lanes = tiles.lanes;
  const std::vector<float> x = some(size_t(rows) * kStep + 64, 2),
                           w = some(size_t(kTaps * kDepth * lanes), 3);
  std::vector<const Cell*> in;
  for (int i = 0; i < rows; ++i) in.push_back(cells(x) + i * kStep);
  const int64_t tap[kTaps] = {3, 20};
  std::vector<float> sums(size_t(rows * lanes), 0.5f);
  tiles.product({.rows = rows,
                 .in = in.data(),
                 .tap = tap,
                 .taps = kTaps,
                 .depth = kDepth,
                 .weights = cells(w),
                 .sums = sums.data(),
                 .sums_step = lanes,
                 .add = true});
  for (int i = 0; i < rows; ++i)
    for (int64_t l = 0; l < lanes; ++l) {
      float want = 0.5f;
      for (int64_t t = 0; t < kTaps; ++t)
        for (int64_t d = 0; d < kDepth; ++d)
          want += x[size_t(i * kStep + tap[t] + d)] * w[size_t((t * kDepth + d) * lanes + l)];
      ASSERT_EQ(sums[size_t(i * lanes + l)], want) << rows << " rows of " << lanes;
    }
}

void expect_outer(const TileKernels& tiles, int rows) {
  const int64_t lanes = tiles.lanes;
  const Pixels at{.planes = 2, .rows = 2, .columns = 3, .plane_step = 40, .row_step = 15, .step = 4};
  const std::vector<float> x = some(128, 4), y = some(size_t(12 * lanes), 5);
  std::vector<float> sums(size_t(rows * lanes), 9);
  tiles.outer[rows - 1](
      {.x = cells(x), .y = cells(y), .at = at, .y_step = lanes, .sums = sums.data(), .add = false});
  for (int i = 0; i < rows; ++i)
    for (int64_t l = 0; l < lanes; ++l) {
      float want = 0;
      for (int64_t p = 0; p < 12; ++p)
        want += x[size_t(p / 6 * 40 + p / 3 % 2 * 15 + p % 3 * 4 + i)] * y[size_t(p * lanes + l)];
      ASSERT_EQ(sums[size_t(i * lanes + l)], want) << rows << " rows of " << lanes;
    }
}

TEST(Kernels, MultiplyTiles) {
  for (const Kernels* k : tables())
    for (const TileKernels* tiles : {&k->tiles, &k->slim_tiles})
      for (int rows = 1; rows <= tiles->rows; ++rows)
        expect_products(*tiles, rows), expect_outer(*tiles, rows);
}

// Sums of bf16 that lie between two of them; where the processor rounds, too.
TEST(Kernels, RoundToBf16AsTheScalarDoes) {
  std::vector<bf16> x, y;
  for (int i = 0; i < 1000; ++i)
    x.push_back(bf16(1 + float(i) / 128)), y.push_back(bf16(float(i * 7 % 1000) / 77777));
  for (const Kernels* k : tables()) {
    std::vector<bf16> sums = y;
    k->blend[1](sums.data(), x.data(), 1, int64_t(x.size()));
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(sums[i].bits, bf16(float(x[i]) + float(y[i])).bits) << k->width << ' ' << i;
  }
}

// By element(): the same in each type, since these numbers are exact in all.
template <class T>
void expect_blended(const Kernels& k, size_t element) {
  const std::vector<float> x = some(21, 6), y = some(21, 7);
  std::vector<T> from(x.begin(), x.end()), to(y.begin(), y.end());
  k.blend[element](to.data(), from.data(), 0.5f, 21);
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(float(to[i]), x[i] + 0.5f * y[i]) << k.width << ' ' << element;
}

TEST(Kernels, BlendElementsOfEachType) {
  for (const Kernels* k : tables())
    expect_blended<float>(*k, 0), expect_blended<bf16>(*k, 1), expect_blended<f16>(*k, 2);
}

TEST(Kernels, FinishTilesWithBiasAndReLU) {
  const std::vector<float> sums = some(2 * 32, 8), bias = some(21, 9);
  for (const Kernels* k : tables()) {
    std::vector<float> y(2 * 32, 9);
    void* out[2] = {y.data(), y.data() + 32};
    k->finish[0]({out, sums.data(), bias.data(), 2, 32, 3, 21, 0, true});
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t r = i / 32, c = i % 32;
      const float want = c < 3 || c >= 24 ? 9 : std::max(0.f, sums[r * 32 + c - 3] + bias[c - 3]);
      ASSERT_EQ(y[i], want) << k->width;
    }
  }
}

// Six rows of 32 channels, a strip of four and two more; the ReLU's mask is computed from x.
TEST(Kernels, NormalizeAndDifferentiate) {
  constexpr size_t kWidth = 32, kAll = 6 * kWidth;
  const std::vector<float> x = some(kAll, 10), residual = some(kAll, 11), dy = some(kAll, 12),
                           mean = some(kWidth, 13), k = some(kWidth, 14), b = some(kWidth, 15),
                           p = some(kWidth, 16), q = some(kWidth, 17), r = some(kWidth, 18);
  NormPass pass{.x = x.data(), .dy = dy.data(), .mean = mean.data(), .k = k.data(), .b = b.data()};
  pass.p = p.data(), pass.q = q.data(), pass.r = r.data();
  for (const Kernels* t : tables()) {
    const NormKernels& norm = t->norm[0];
    std::vector<float> y(kAll), dx(kAll), sums(2 * kWidth), back(2 * kWidth), want(2 * kWidth),
        want_back(2 * kWidth);
    norm.statistics(pass, {0, 6, kWidth, kWidth}, sums.data());
    norm.gradient_sums[int(Mask::kInput)](pass, {0, 6, kWidth, kWidth}, back.data());
    NormPass forward = pass, backward = pass;
    forward.out = y.data(), forward.residual = residual.data(), backward.out = dx.data();
    norm.apply(forward, {0, 6, kWidth, kWidth});
    norm.gradient[int(Mask::kInput)](backward, {0, 6, kWidth, kWidth});
    for (size_t i = 0; i < kAll; ++i) {
      const size_t c = i % kWidth;
      const float away = x[i] - mean[c], z = away * k[c] + b[c], d = z > 0 ? dy[i] : 0;
      want[c] += away, want[kWidth + c] += away * away;
      want_back[c] += d, want_back[kWidth + c] += d * away;
      ASSERT_EQ(y[i], std::max(0.f, z + residual[i])) << t->width;
      ASSERT_EQ(dx[i], p[c] * d + q[c] * away + r[c]) << t->width;
    }
    EXPECT_EQ(sums, want) << t->width;
    EXPECT_EQ(back, want_back) << t->width;
  }
}

// The sum over the taps of channel c at (h, w) of an image 5 x 5, padded by one.
float depthwise_at(const std::vector<float>& x, const std::vector<float>& taps, int64_t C, int64_t h,
                   int64_t w, int64_t c) {
  float sum = 0;
  for (int64_t t = 0; t < 9; ++t) {
    const int64_t i = h + t / 3 - 1, j = w + t % 3 - 1;
    if (i >= 0 && i < 5 && j >= 0 && j < 5) sum += x[size_t((i * 5 + j) * C + c)] * taps[size_t(t * C + c)];
  }
  return sum;
}

// Multiplied position by position, transformed tiles are a depthwise convolution. Tiles of 2x2 give the very
// sums of these numbers; the factors of tiles of 4x4 round.
void expect_tiles_to_convolve(int width, const WinogradKernels& k, float tolerance) {
  constexpr int64_t C = 21;
  std::vector<float> x = some(25 * C, 19), zeros(C), y(25 * C);
  const std::vector<float> taps = some(9 * C, 20);
  const int64_t wide = (5 + k.side - 1) / k.side, tiles = wide * wide;
  std::vector<float> d(size_t(k.positions * tiles * C)), u(size_t(k.positions * C));
  WinogradMap map{x.data(), zeros.data(), 5, 5, C, 1, wide, wide};
  k.input[0](map, 0, tiles, {d.data(), tiles * C, C});
  k.filters(taps.data(), C, C, false, {u.data(), C, 0});
  for (size_t i = 0; i < d.size(); ++i) d[i] *= u[i / size_t(tiles * C) * C + i % C];
  map.images = y.data(), map.padding = 0;
  k.output[0](map, 0, tiles, {d.data(), tiles * C, C}, {nullptr, 0, false});
  for (int64_t i = 0; i < 25 * C; ++i)
    ASSERT_NEAR(y[size_t(i)], depthwise_at(x, taps, C, i / C / 5, i / C % 5, i % C), tolerance)
        << width << ", " << k.side;
}

TEST(Kernels, TransformTilesForWinograd) {
  for (const Kernels* k : tables()) {
    expect_tiles_to_convolve(k->width, k->winograd, 0);
    expect_tiles_to_convolve(k->width, k->winograd_wide, 2e-5f);
  }
}

TEST(Kernels, ConvolveDepthwise) {
  constexpr int64_t C = 32;
  const std::vector<float> x = some(25 * C, 21), taps = some(9 * C, 22);
  int64_t tap[9];
  for (int64_t t = 0; t < 9; ++t) tap[t] = (t / 3 * 5 + t % 3) * C;
  for (const Kernels* k : tables())
    for (int pixels = 1; pixels <= 3; ++pixels) {
      std::vector<float> sums(9 * C);
      k->depthwise.product[pixels - 1](
          {x.data(), 5 * C, C, tap, 9, C, taps.data(), sums.data(), 3 * C, C, 3, 3});
      for (int64_t i = 0; i < 9 * C; ++i)
        ASSERT_EQ(sums[size_t(i)], depthwise_at(x, taps, C, i / C / 3 + 1, i / C % 3 + 1, i % C)) << k->width;
    }
}

// Three pixels of an image one row high, with two or three taps, as a convolution of 32 channels and outputs.
void expect_grouped(const Kernels& k, int64_t group) {
  constexpr int64_t C = 32, kPixels = 3, kTaps = 3;
  const int64_t W = k.width, tap[kTaps] = {0, C, 2 * C}, weight[kTaps] = {0, group * W, 2 * group * W};
  const std::vector<float> x = some(5 * C, 25), taps = some(size_t(kTaps * group * C), 26),
                           dy = some(3 * C, 27);
  std::vector<float> dw(size_t(kTaps * group * W));
  alignas(64) float y[kPixels * C] = {};
  const GroupedRow& row = k.grouped.of(group, W);
  const auto product = [&](int64_t together, int64_t count, int64_t j, int64_t panels, bool past_caches) {
    row.product[together - 1][kPixels - 2]({.in = cells(x) + j / std::max(group, W) * std::max(group, W),
                                            .in_row = 0,
                                            .in_step = C,
                                            .taps = {tap, weight, count, group},
                                            .weights = cells(taps) + j * kTaps * group,
                                            .panels = {.count = panels,
                                                       .weights = kTaps * group * W,
                                                       .shared = std::max(group, W) / W,
                                                       .in_step = std::max(group, W)},
                                            .to = y + j,
                                            .results = true,
                                            .past_caches = past_caches,
                                            .to_row = 0,
                                            .to_step = C,
                                            .rows = 1,
                                            .columns = kPixels,
                                            .next = 0});
  };
  const auto expect_result = [&](int64_t count) {
    for (int64_t o = 0; o < C; ++o)
      for (int64_t q = 0; q < kPixels; ++q) {
        float want = 0;
        for (int64_t t = 0; t < count; ++t)
          for (int64_t i = 0; i < group; ++i)
            want += x[size_t(q * C + tap[t] + o / group * group + i)] *
                    taps[size_t(o / W * W * kTaps * group + (t * group + i) * W + o % W)];
        ASSERT_EQ(y[q * C + o], want) << W << " wide, groups of " << group;
      }
    std::fill(std::begin(y), std::end(y), 0.f);
  };
  for (int64_t j = 0; j < C; j += W) product(1, kTaps, j, 1, false);
  expect_result(kTaps);
  for (const bool past_caches : {false, true}) {
    product(2, 2, 0, C / W, past_caches);
    expect_result(2);
    product(3, kTaps, 0, C / W, past_caches);
    expect_result(kTaps);
  }
  for (int64_t j = 0; j < C; j += W) {
    const Pixels pixels{1, 1, kPixels, 0, 0, C};
    for (int64_t i = 0; i < group; i += row.outputs)
      row.outer[kTaps - 1]({.x = cells(x) + j,
                            .y = cells(dy) + j / std::max(group, W) * std::max(group, W) + i,
                            .x_at = pixels,
                            .y_at = pixels,
                            .tap = tap,
                            .sums = dw.data() + i * W,
                            .sums_step = group * W,
                            .add = false});
    for (int64_t t = 0; t < kTaps; ++t)
      for (int64_t i = 0; i < group * W; ++i) {
        float want = 0;
        const int64_t c = j + i % W, o = c / group * group + i / W;
        for (int64_t q = 0; q < kPixels; ++q) want += x[size_t(q * C + tap[t] + c)] * dy[size_t(q * C + o)];
        ASSERT_EQ(dw[size_t(t * group * W + i)], want) << W << " wide, groups of " << group;
      }
  }
}

TEST(Kernels, ConvolveGroups) {
  for (const Kernels* k : tables())
    for (const int64_t group : {2, 4, 8, 16, 32})
      if (group < k->width || group % k->width == 0) expect_grouped(*k, group);
}

// The largest of each window, where it was, and its gradient there.
TEST(Kernels, PoolTheLargest) {
  constexpr int64_t C = 21, P = 3;
  const std::vector<float> x = some(25 * C, 23), dy = some(P * P * C, 24);
  for (const Kernels* k : tables()) {
    std::vector<float> y(P * P * C), dx(25 * C), want_dx(25 * C);
    std::vector<uint8_t> argmax(P * P * C);
    PoolPlane plane{x.data(), y.data(), argmax.data(), nullptr, 5, 5, P, P, C, 3, 2, 1, 0, false};
    for (int64_t row = 0; row < P; ++row) k->pool[0].maximum(plane, row);
    for (int64_t i = 0; i < P * P * C; ++i) {
      const int64_t p = i / C / P, q = i / C % P, at = argmax[size_t(i)];
      const int64_t from = ((p * 2 - 1 + at / 3) * 5 + q * 2 - 1 + at % 3) * C + i % C;
      float best = -9;
      for (int64_t r = std::max<int64_t>(p * 2 - 1, 0); r < std::min<int64_t>(p * 2 + 2, 5); ++r)
        for (int64_t s = std::max<int64_t>(q * 2 - 1, 0); s < std::min<int64_t>(q * 2 + 2, 5); ++s)
          best = std::max(best, x[size_t((r * 5 + s) * C + i % C)]);
      ASSERT_EQ(y[size_t(i)], best) << k->width;
      ASSERT_EQ(x[size_t(from)], best) << k->width;
      want_dx[size_t(from)] += dy[size_t(i)];
    }
    plane.in = dy.data(), plane.out = dx.data();
    for (int64_t row = 0; row < 5; ++row) k->pool[0].maximum_gradient(plane, row);
    EXPECT_EQ(dx, want_dx) << k->width;
  }
}

}  // namespace
}  // namespace skein::cpu
