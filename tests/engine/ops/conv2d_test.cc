// Convolutions: every way of the backend against a plain reference in double.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include "engine/backend.h"
#include "engine/cpu/depthwise_conv.h"
#include "engine/cpu/direct_conv.h"
#include "engine/cpu/grouped_conv.h"
#include "engine/cpu/kernels.h"
#include "engine/cpu/onednn.h"
#include "engine/cpu/winograd.h"
#include "engine/device/processor.h"
#include "tests/support/conv_cases.h"
#include "tests/support/reference.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

// Calls f(index of x, of w, of y) for every product of the convolution.
template <class F>
void each_product(const ConvArgs& c, F f) {
  const auto& g = c.geometry;
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3), R = c.w.dim(1), S = c.w.dim(2),
                I = c.w.dim(3);
  const int64_t O = c.y.dim(3), per_group = O / g.groups;
  for (int64_t at = 0; at < c.y.size(); ++at) {
    const int64_t o = at % O, q = at / O % c.y.dim(2), p = at / O / c.y.dim(2) % c.y.dim(1);
    const int64_t n = at / O / c.y.dim(2) / c.y.dim(1);
    for (int64_t r = 0; r < R; ++r)
      for (int64_t s = 0; s < S; ++s)
        for (int64_t i = 0; i < I; ++i) {
          const int64_t h = p * g.stride - g.padding + r * g.dilation,
                        w = q * g.stride - g.padding + s * g.dilation;
          if (h < 0 || h >= H || w < 0 || w >= W) continue;
          f(size_t(((n * H + h) * W + w) * C + o / per_group * I + i), size_t(((o * R + r) * S + s) * I + i),
            size_t(at));
        }
  }
}

Numbers scaled(const Numbers& v, double beta) {
  Numbers y = v;
  for (double& x : y) x = beta == 0 ? 0 : x * beta;
  return y;
}

// Beyond those that both processors are tried with: grouped, depthwise and other shapes.
const std::vector<ConvCase> kCases =
    with(kConvCases, {{2, 9, 9, 16, 16, 3, 3, {1, 1, 1, 16}},
                      {1, 12, 12, 8, 12, 3, 3, {1, 2, 2, 1}},
                      {2, 7, 7, 8, 16, 3, 3, {2, 1, 1, 4}},
                      {1, 10, 8, 6, 6, 3, 3, {1, 2, 2, 6}},
                      {3, 7, 9, 24, 40, 3, 3, {1, 1, 1, 1}},
                      {1, 30, 31, 16, 8, 3, 3, {1, 0, 1, 1}},
                      {2, 8, 5, 8, 24, 3, 3, {1, 2, 1, 1}},
                      {2, 6, 6, 32, 40, 3, 3, {1, 1, 1, 1}},
                      {2, 14, 13, 40, 40, 3, 3, {2, 1, 1, 40}},
                      {3, 9, 11, 24, 24, 5, 5, {1, 2, 1, 24}},
                      {1, 12, 9, 48, 48, 7, 7, {1, 3, 1, 48}},
                      {2, 8, 9, 32, 32, 3, 3, {1, 1, 1, 8}},
                      {2, 7, 6, 12, 24, 3, 3, {1, 1, 1, 12}},
                      {1, 9, 9, 24, 12, 3, 3, {2, 1, 2, 3}},
                      {2, 5, 5, 32, 32, 1, 1, {2, 0, 1, 32}},
                      {2, 9, 8, 24, 24, 3, 3, {1, 1, 1, 12}},
                      {3, 9, 11, 40, 40, 3, 3, {2, 1, 1, 10}},
                      {1, 11, 10, 24, 24, 3, 3, {2, 1, 1, 3}},
                      {2, 7, 9, 32, 32, 3, 3, {1, 1, 1, 2}},
                      {1, 12, 7, 64, 64, 3, 3, {2, 1, 1, 2}},
                      {2, 7, 7, 8, 8, 5, 5, {1, 2, 1, 2}},
                      {1, 10, 9, 48, 48, 3, 3, {1, 2, 2, 6}},
                      {2, 6, 5, 96, 96, 1, 1, {2, 0, 1, 2}},
                      {1, 16, 30, 16, 16, 3, 2, {3, 2, 1, 4}},
                      {1, 9, 12, 256, 256, 3, 3, {2, 1, 1, 32}},
                      {1, 7, 8, 512, 512, 3, 3, {2, 1, 1, 128}},
                      // Few channels, and outputs a multiple of 16: AMX takes a window's row for a pixel in
                      // weight gradients. Windows leave the image at one side, at both, or at none.
                      {3, 21, 19, 3, 16, 7, 7, {2, 3, 1, 1}},
                      {2, 9, 4, 5, 32, 3, 3, {1, 1, 1, 1}},
                      {1, 6, 3, 3, 16, 3, 5, {1, 2, 1, 1}},
                      {5, 8, 8, 16, 48, 3, 3, {1, 1, 1, 1}},
                      {2, 13, 11, 8, 16, 5, 5, {3, 0, 1, 1}},
                      {4, 5, 5, 12, 16, 3, 3, {1, 2, 1, 1}},
                      {1, 50, 47, 4, 16, 3, 3, {1, 1, 1, 1}},
                      {2, 9, 8, 8, 16, 3, 7, {1, 3, 1, 1}},
                      {1, 11, 10, 3, 16, 2, 2, {3, 0, 1, 1}},
                      {2, 10, 11, 6, 32, 2, 2, {3, 1, 1, 1}},
                      // Both numbers of channels are multiples of 16, as AMX wants them.
                      {3, 9, 11, 48, 80, 3, 3, {2, 1, 1, 1}},
                      {1, 17, 19, 32, 48, 3, 3, {1, 1, 1, 1}},
                      {2, 12, 12, 16, 32, 3, 3, {1, 2, 2, 1}},
                      {1, 17, 19, 16, 16, 5, 5, {3, 2, 1, 1}},
                      {1, 9, 10, 272, 16, 1, 1, {1, 0, 1, 1}},
                      {2, 11, 11, 32, 16, 3, 2, {1, 2, 1, 1}},
                      {2, 9, 9, 16, 96, 4, 4, {2, 1, 2, 1}},
                      {2, 21, 18, 64, 16, 1, 1, {3, 0, 1, 1}},
                      // So many channels that their sums are taken in parts, in cells of one element or two.
                      {1, 3, 3, 640, 48, 1, 1, {1, 0, 1, 1}},
                      {1, 3, 3, 48, 640, 1, 1, {1, 0, 1, 1}},
                      {1, 3, 3, 1024, 48, 1, 1, {1, 0, 1, 1}},
                      {1, 3, 3, 48, 1024, 1, 1, {1, 0, 1, 1}},
                      // Pixels that lie so far apart that their cells would compete for a set of a cache.
                      {1, 3, 3, 512, 8, 3, 3, {1, 1, 1, 1}},
                      {1, 3, 3, 8, 512, 3, 3, {1, 1, 1, 1}},
                      {1, 4, 5, 128, 128, 3, 3, {1, 1, 1, 32}},
                      {1, 4, 5, 128, 128, 3, 3, {1, 1, 1, 8}},
                      {1, 3, 4, 512, 512, 3, 3, {1, 1, 1, 64}},
                      {1, 3, 4, 1024, 1024, 3, 3, {2, 1, 1, 128}},
                      // Odd numbers of pixels in rows, images and blocks, of which two share a cell.
                      {5, 3, 5, 40, 72, 1, 1, {1, 0, 1, 1}},
                      {2, 5, 5, 16, 16, 1, 1, {1, 1, 1, 1}},
                      {3, 5, 7, 6, 16, 1, 1, {1, 0, 1, 1}},
                      // Several blocks, the next of which is fetched while one is multiplied.
                      {1, 71, 99, 16, 16, 1, 1, {1, 0, 1, 1}},
                      {1, 60, 61, 16, 16, 3, 3, {2, 1, 1, 1}},
                      {1, 57, 55, 8, 8, 3, 3, {1, 1, 1, 1}}});

ConvArgs make_conv(const ConvCase& k, DType t, bool bias) {
  const auto& g = k.geometry;
  const int64_t p = (k.h + 2 * g.padding - g.dilation * (k.r - 1) - 1) / g.stride + 1;
  const int64_t q = (k.w + 2 * g.padding - g.dilation * (k.s - 1) - 1) / g.stride + 1;
  ConvArgs c{.x = gaussian({k.n, k.h, k.w, k.c}, t, 1),
             .w = gaussian({k.o, k.r, k.s, k.c / g.groups}, kF32, 2),
             .bias = {},
             .y = gaussian({k.n, p, q, k.o}, t, 3),
             .geometry = g};
  if (bias) c.bias = gaussian({k.o}, kF32, 4);
  return c;
}

using Pass = void (*)(const ConvArgs&);
struct Way {
  const char* name;
  Pass forward, data, weights;
  bool (*fits)(const ConvArgs&);
};
bool always(const ConvArgs&) { return true; }
bool ungrouped(const ConvArgs& c) { return c.geometry.groups == 1; }
const Way kWays[] = {
    {"chosen", cpu::conv2d_forward, cpu::conv2d_backward_data, cpu::conv2d_backward_weights, always},
    {"oneDNN", cpu::onednn_forward, cpu::onednn_backward_data, cpu::onednn_backward_weights, always},
    {"direct", cpu::direct_forward, cpu::direct_backward_data, cpu::direct_backward_weights, ungrouped},
    {"depthwise", cpu::depthwise_forward, cpu::depthwise_backward_data, cpu::depthwise_backward_weights,
     cpu::is_depthwise},
    {"grouped", cpu::grouped_forward, cpu::grouped_backward_data, cpu::grouped_backward_weights,
     cpu::grouped_fits},
    {"Winograd", cpu::winograd_forward, cpu::winograd_backward_data, cpu::winograd_backward_weights,
     cpu::winograd_fits}};

// Calls f(way, arguments, bits, text) for every way that supports a case, type and setting of the two bits.
template <class F>
void each_conv(F f) {
  for (const Way& way : kWays)
    for (DType t : {kF32, kBF16, kF16})
      for (const ConvCase& k : kCases)
        for (int bits = 0; bits < 4; ++bits)
          if (ConvArgs c = make_conv(k, t, bits); way.fits(c))
            f(way, c, bits, text(way.name, ' ', t, " case ", &k - kCases.data(), " bits ", bits));
}

TEST(Conv, ForwardEqualsTheReferenceWithBiasAndRelu) {
  each_conv([](const Way& way, ConvArgs c, int bits, const std::string& what) {
    c.relu = bits & 2;
    Numbers want(size_t(c.y.size()));
    const Numbers x = numbers(c.x), w = numbers(c.w), bias = numbers(c.bias);
    each_product(c, [&](size_t i, size_t j, size_t at) { want[at] += x[i] * w[j]; });
    for (size_t i = 0; i < want.size(); ++i) {
      if (c.bias) want[i] += bias[i % bias.size()];
      if (c.relu) want[i] = std::max(0., want[i]);
    }
    spoil(c.y), way.forward(c);
    EXPECT_LT(error(c.y, want), bound(c.x.dtype())) << what;
  });
}

TEST(Conv, DataGradientEqualsTheReferenceAndAccumulates) {
  each_conv([](const Way& way, ConvArgs c, int bits, const std::string& what) {
    c.bias = {};
    c.beta = bits & 2 ? 1 : 0;
    Numbers want = scaled(numbers(c.x), c.beta);
    const Numbers y = numbers(c.y), w = numbers(c.w);
    each_product(c, [&](size_t i, size_t j, size_t at) { want[i] += y[at] * w[j]; });
    if (c.beta == 0) spoil(c.x);
    way.data(c);
    EXPECT_LT(error(c.x, want), bound(c.x.dtype())) << what;
  });
}

TEST(Conv, WeightGradientEqualsTheReferenceAndAccumulates) {
  each_conv([](const Way& way, ConvArgs c, int bits, const std::string& what) {
    c.bias = {};
    c.beta = bits & 2 ? 1 : 0;
    Numbers dw = scaled(numbers(c.w), c.beta);
    const Numbers x = numbers(c.x), y = numbers(c.y);
    each_product(c, [&](size_t i, size_t j, size_t at) { dw[j] += x[i] * y[at]; });
    if (c.beta == 0) spoil(c.w);
    way.weights(c);
    EXPECT_LT(error(c.w, dw), bound(kF32)) << what;
  });
}

// Of what is computed, before it is rounded; the result is the same as without.
TEST(Conv, SumsOfTheResultAreThoseOfAllItsPixels) {
  std::set<Pass> ways;
  each_conv([&](const Way& way, ConvArgs c, int bits, const std::string& what) {
    const int64_t C = c.y.dim(3);
    const bool given = way.forward == cpu::conv2d_forward   ? bool(cpu::sums_for(c).sum)
                       : way.forward == cpu::direct_forward ? cpu::direct_gives_sums(c)
                                                            : way.forward == cpu::winograd_forward;
    if (bits || !given) return;
    ways.insert(way.forward), way.forward(c);
    const Numbers y = numbers(c.y);
    c.y = Tensor(c.y.shape(), c.y.dtype()), c.sums = {Tensor({C}), Tensor({C})};
    spoil(c.y), spoil(c.sums.sum), spoil(c.sums.squares);
    way.forward(c);
    EXPECT_EQ(numbers(c.y), y) << what;
    const double rounded = c.y.dtype() == kF32 ? 1e-6 : 1. / 256;
    for (int64_t k = 0; k < C; ++k) {
      double sum = 0, squares = 0, size = 0;
      for (size_t i = size_t(k); i < y.size(); i += size_t(C))
        sum += y[i], squares += y[i] * y[i], size += std::abs(y[i]);
      EXPECT_NEAR(c.sums.sum.data<float>()[k], sum, rounded * size) << what << ", channel " << k;
      EXPECT_NEAR(c.sums.squares.data<float>()[k], squares, 2 * rounded * squares) << what << ' ' << k;
    }
  });
  EXPECT_EQ(ways.size(), 3);
}

// A model that has diverged must not evaluate to numbers: every result that has seen the NaN is one.
TEST(Conv, ReluKeepsNaNs) {
  each_conv([](const Way& way, ConvArgs c, int bits, const std::string& what) {
    if (bits) return;
    c.relu = true;
    visit_float(c.x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::fill_n(c.x.data<T>(), c.x.size(), T(std::numeric_limits<float>::quiet_NaN()));
    });
    std::vector<bool> sees(size_t(c.y.size()));
    each_product(c, [&](size_t, size_t, size_t at) { sees[at] = true; });
    way.forward(c);
    const Numbers y = numbers(c.y);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_TRUE(!sees[i] || std::isnan(y[i])) << what << ", at " << i;
  });
}

#ifdef __x86_64__
TEST(Conv, AndOneDnnUseTheInstructionSetsThatAreChosen) {
  const Isa isa = chosen_isa();
  EXPECT_EQ(cpu::kernels().width, isa == Isa::kAvx2 ? 8 : 16);
  EXPECT_EQ(cpu::has_isa(dnnl::cpu_isa::avx512_core), isa >= Isa::kAvx512);
  EXPECT_EQ(cpu::has_isa(dnnl::cpu_isa::avx512_core_bf16), isa >= Isa::kAvx512Bf16);
  EXPECT_EQ(cpu::has_isa(dnnl::cpu_isa::avx512_core_amx), isa == Isa::kAmx);
  EXPECT_TRUE(cpu::describe().starts_with(name_of(isa))) << cpu::describe();
}
#endif

// From 8 MiB on results are written past the caches where whole lines are written: in f32 on any processor,
// in bf16 where pairs are multiplied; in groups by one panel or two, unless too few of them stay in a cache.
TEST(Conv, LargeResultsEqualOneDnns) {
  const std::pair<ConvCase, DType> large[] = {
      {{2, 128, 128, 64, 64, 3, 3, {1, 1, 1, 16}}, kF32}, {{1, 192, 192, 8, 64, 1, 1, {1, 0, 1, 1}}, kF32},
      {{1, 192, 192, 64, 8, 1, 1, {1, 0, 1, 1}}, kF32},   {{1, 256, 256, 16, 64, 1, 1, {1, 0, 1, 1}}, kBF16},
      {{1, 256, 256, 64, 16, 1, 1, {1, 0, 1, 1}}, kBF16}, {{1, 256, 256, 64, 64, 3, 3, {1, 1, 1, 16}}, kBF16},
      {{1, 256, 256, 64, 64, 5, 5, {1, 2, 1, 8}}, kBF16}};
  for (const auto& [k, t] : large) {
    const ConvArgs c = make_conv(k, t, false);
    ConvArgs forward = c, back = c;
    forward.y = Tensor(c.y.shape(), t), back.x = Tensor(c.x.shape(), t);
    cpu::onednn_forward(forward), cpu::onednn_backward_data(back);
    const Numbers y = numbers(forward.y), x = numbers(back.x);
    for (const Way& way : kWays) {
      if (!way.fits(c)) continue;
      spoil(forward.y), way.forward(forward);
      EXPECT_LT(error(forward.y, y), bound(t)) << way.name << ' ' << t << k.c;
      spoil(back.x), way.data(back);
      EXPECT_LT(error(back.x, x), bound(t)) << way.name << ' ' << t << k.c;
    }
  }
}

// There oneDNN's would spoil the heap, or sums of three threads.
TEST(Conv, WeightsOfSinglePixelsApartAndOfFewChannelsEqualTheReference) {
  const int before = omp_get_max_threads();
  for (const int threads : {1, 3})
    for (DType t : {kF32, kBF16, kF16})
      for (const int64_t channels : {4, 8, 12, 15}) {
        omp_set_num_threads(threads);
        const ConvArgs c = make_conv({32, 32, 32, channels, 8, 1, 1, {2, 0, 1, 1}}, t, false);
        Numbers want(size_t(c.w.size()));
        const Numbers x = numbers(c.x), dy = numbers(c.y);
        each_product(c, [&](size_t i, size_t j, size_t at) { want[j] += x[i] * dy[at]; });
        for (int repeat = 0; repeat < 5; ++repeat) {
          spoil(c.w), cpu::conv2d_backward_weights(c);
          EXPECT_LT(error(c.w, want), bound(kF32)) << t << ' ' << channels << ' ' << threads;
        }
      }
  omp_set_num_threads(before);
}

TEST(Conv, ManyThreadsOfOneProcessAgreeBitForBit) {
  std::vector<Numbers> results(4);
  std::vector<std::thread> team;
  for (size_t i = 0; i < results.size(); ++i)
    team.emplace_back([&, i] {
      omp_set_num_threads(1);
      for (int repeat = 0; repeat < 5; ++repeat) {
        ConvArgs c = make_conv(kConvCases[1], kF32, true);
        conv2d_forward(kCpu, c);
        conv2d_backward_weights(kCpu, c);
        results[i] = numbers(c.w);
      }
    });
  for (auto& t : team) t.join();
  for (const Numbers& r : results) EXPECT_EQ(r, results[0]);
}

TEST(Conv, RepeatsItselfBitForBitForOneNumberOfThreads) {
  const int before = omp_get_max_threads();
  for (const int threads : {1, 3}) {
    omp_set_num_threads(threads);
    each_conv([&](const Way& way, const ConvArgs& c, int bits, const std::string& what) {
      if (bits) return;
      const auto twice = [&](Pass pass, Tensor ConvArgs::*result) {
        ConvArgs a = c, b = c;
        a.*result = Tensor((c.*result).shape(), (c.*result).dtype()), b.*result = (a.*result).clone();
        pass(a), pass(b);
        EXPECT_EQ(numbers(a.*result), numbers(b.*result)) << what << ", " << threads << " threads";
      };
      twice(way.forward, &ConvArgs::y);
      twice(way.data, &ConvArgs::x);
      twice(way.weights, &ConvArgs::w);
    });
  }
  omp_set_num_threads(before);
}

TEST(Conv, RefusesAResultOfTheWrongShape) {
  ConvArgs c = make_conv(kConvCases[0], kF32, false);
  c.y = Tensor({2, 9, 8, 16});
  EXPECT_THROW(conv2d_forward(kCpu, c), Error);
}

}  // namespace
}  // namespace skein
