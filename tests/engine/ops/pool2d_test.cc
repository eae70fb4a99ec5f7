// Pooling: the backend against a plain reference in double, and the gradients and shapes of the ops.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/backend.h"
#include "tests/support/reference.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

struct PoolCase {
  int64_t n, h, w, c;
  int size, stride, padding;
  bool ceil_mode;
};
const PoolCase kPoolCases[] = {{2, 8, 8, 16, 2, 2, 0, false},
                               {2, 9, 7, 5, 3, 2, 1, false},
                               {1, 6, 6, 3, 3, 2, 0, true},
                               {3, 5, 5, 1, 2, 2, 0, true},
                               {2, 7, 7, 70, 3, 1, 1, false},
                               {1, 11, 11, 64, 3, 2, 1, true},
                               {2, 4, 4, 130, 4, 4, 0, false},
                               {1, 7, 5, 8, 2, 3, 0, false},
                               // The largest windows, apart: few sums among zeros miss the bound.
                               {1, 33, 17, 37, 16, 17, 0, false},
                               {2, 32, 17, 5, 16, 16, 8, true}};

int64_t extent(int64_t n, const PoolCase& k) {
  const int64_t room = n + 2 * k.padding - k.size;
  const int64_t p = (k.ceil_mode ? (room + k.stride - 1) / k.stride : room / k.stride) + 1;
  return k.ceil_mode && (p - 1) * k.stride >= n + k.padding ? p - 1
                                                            : p;  // no window may begin beyond the input
}

PoolArgs make_pool(const PoolCase& k, DType t, bool average) {
  const Shape y{k.n, extent(k.h, k), extent(k.w, k), k.c};
  PoolArgs a{.x = gaussian({k.n, k.h, k.w, k.c}, t, 1),
             .y = Tensor(y, t),
             .argmax = {},
             .dx = {},
             .dy = gaussian(y, t, 2),
             .size = k.size,
             .stride = k.stride,
             .padding = k.padding,
             .ceil_mode = k.ceil_mode,
             .average = average};
  a.dx = gaussian(a.x.shape(), t, 3);
  if (!average) a.argmax = Tensor(y, kU8);
  return a;
}

// Computes y and adds to dx from dy, in one pass over all windows.
void reference_pool(const PoolArgs& a, Numbers& y, Numbers& dx) {
  const Numbers x = numbers(a.x), dy = numbers(a.dy);
  const int64_t H = a.x.dim(1), W = a.x.dim(2), C = a.x.dim(3), P = a.y.dim(1), Q = a.y.dim(2);
  for (int64_t at = 0; at < a.y.size(); ++at) {
    const int64_t c = at % C, q = at / C % Q, p = at / C / Q % P, n = at / C / Q / P;
    std::vector<size_t> inside;
    for (int64_t h = p * a.stride - a.padding; h < p * a.stride - a.padding + a.size; ++h)
      for (int64_t w = q * a.stride - a.padding; w < q * a.stride - a.padding + a.size; ++w)
        if (h >= 0 && h < H && w >= 0 && w < W) inside.push_back(size_t(((n * H + h) * W + w) * C + c));
    size_t best = inside[0];
    double sum = 0;
    for (size_t i : inside) {
      if (x[i] > x[best]) best = i;
      sum += x[i];
    }
    y.push_back(a.average ? sum / double(inside.size()) : x[best]);
    if (!a.average) dx[best] += dy[size_t(at)];
    for (size_t i : inside)
      if (a.average) dx[i] += dy[size_t(at)] / double(inside.size());
  }
}

void expect_pool(PoolArgs a, float beta, const std::string& what) {
  a.beta = beta;
  Numbers y, dx = numbers(a.dx);
  for (double& v : dx) v = beta == 0 ? 0 : beta * v;
  reference_pool(a, y, dx);
  spoil(a.y), spoil(a.argmax);
  if (beta == 0) spoil(a.dx);
  pool2d_forward(kCpu, a);
  pool2d_backward(kCpu, a);
  EXPECT_LT(error(a.y, y), a.average ? bound(a.x.dtype()) : 1e-12) << what;
  EXPECT_LT(error(a.dx, dx), bound(a.x.dtype())) << what;
}

TEST(Pool, MaximumAndAverageEqualTheReference) {
  for (DType t : {kF32, kBF16, kF16})
    for (const PoolCase& k : kPoolCases)
      for (bool average : {false, true})
        for (float beta : {0.f, 1.f})
          expect_pool(make_pool(k, t, average), beta,
                      text(t, " case ", &k - kPoolCases, average ? " average" : " max"));
}

// From 8 MiB on results and gradients are written past the caches.
TEST(Pool, LargeImagesEqualTheReference) {
  for (bool average : {false, true}) {
    expect_pool(make_pool({1, 130, 260, 64, 2, 1, 0, false}, kF32, average), 0, "f32");
    expect_pool(make_pool({1, 260, 260, 64, 2, 1, 0, false}, kBF16, average), 0, "bf16");
  }
}

TEST(Pool, TheFirstOfEqualMaximaGetsTheGradient) {
  PoolArgs a = make_pool({1, 4, 4, 3, 2, 2, 0, false}, kF32, false);
  a.x = Tensor::zeros(a.x.shape());
  expect_pool(a, 0, "ties");
}

TEST(Pool, FindsTheLargestInEveryPlaceOfTheLargestWindow) {
  for (int place = 0; place < 256; ++place) {
    PoolArgs a = make_pool({1, 16, 16, 9, 16, 16, 0, false}, kF32, false);
    a.x.data<float>()[place * 9 + 8] = 9;
    expect_pool(a, 0, text("place ", place));
    EXPECT_EQ(a.argmax.data<uint8_t>()[8], place);
  }
  EXPECT_THROW(max_pool2d(Tensor::zeros({1, 17, 17, 1}), {17, 1, 0}), Error);  // places are bytes
}

TEST(Pool, AnElementMayBeIn256Windows) {
  for (bool average : {false, true})
    for (float beta : {0.f, 1.f})
      expect_pool(make_pool({1, 31, 33, 5, 16, 1, 0, false}, kF32, average), beta, text("beta ", beta));
}

TEST(Pool, ANanInTheWindowIsTheMaximum) {
  PoolArgs a = make_pool({1, 2, 2, 1, 2, 2, 0, false}, kF32, false);
  a.x.data<float>()[1] = NAN;
  pool2d_forward(kCpu, a);
  EXPECT_TRUE(std::isnan(a.y.data<float>()[0]));
  EXPECT_EQ(a.argmax.data<uint8_t>()[0], 1);
}

TEST(Pool2d, HasItsGradients) {
  for (const Pool& p : {Pool{2, 2, 0}, Pool{3, 2, 1}, Pool{3, 2, 0, true}, Pool{1, 2, 0}, Pool{3, 1, 1}}) {
    gradcheck([&](const Values& v) { return max_pool2d(v[0], p); }, {distinct({2, 6, 7, 3}, 1)});
    gradcheck([&](const Values& v) { return avg_pool2d(v[0], p); }, {random_uniform({2, 6, 7, 3}, 1)});
  }
  gradcheck([](const Values& v) { return global_avg_pool(v[0]); }, {random_uniform({2, 3, 4, 5}, 1)});
}

TEST(Pool2d, ExtentsFollowTheUsualRule) {
  const Tensor x = Tensor::zeros({1, 7, 8, 1});
  EXPECT_EQ(max_pool2d(x, {3, 2, 1}).shape(), Shape({1, 4, 4, 1}));
  EXPECT_EQ(max_pool2d(x, {2, 2, 0}).shape(), Shape({1, 3, 4, 1}));
  EXPECT_EQ(max_pool2d(x, {2, 2, 0, true}).shape(), Shape({1, 4, 4, 1}));
  EXPECT_EQ(max_pool2d(x, {1, 2, 0, true}).shape(), Shape({1, 4, 4, 1}));  // no window begins past the end
  EXPECT_THROW(max_pool2d(x, {9, 1, 0}), Error);
  EXPECT_THROW(max_pool2d(Tensor({7, 8}), {}), Error);
  for (const Shape& nothing : {Shape{1, 0, 8, 1}, Shape{1, 8, 0, 1}})
    EXPECT_THROW(max_pool2d(Tensor(nothing), {2, 2, 1}), Error) << nothing;
  EXPECT_EQ(max_pool2d(Tensor({0, 7, 8, 1}), {3, 2, 1}).shape(), Shape({0, 4, 4, 1}));
}

TEST(Pool2d, AverageDoesNotCountPadding) {
  const Tensor ones = exp(Tensor::zeros({1, 5, 5, 2}));
  for (const double v : values(avg_pool2d(ones, {3, 2, 1}))) EXPECT_NEAR(v, 1, 1e-6);
}

}  // namespace
}  // namespace skein
