// Our own CUDA kernels against the CPU's primitives: as loops on the host and, with a GPU, as kernels. Batch
// norm has a file of its own, cuda_norm_test.
#include "engine/cuda/pointwise.h"
#include "engine/ops/reduce.h"
#include "tests/cuda/against_cpu.h"

namespace skein {
namespace {
using namespace testing;

class Kernels : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Kernels, kDevices,
                         [](const auto& p) { return p.param.is_cuda() ? "device" : "loops"; });

// ---- pooling ---------------------------------------------------------------------------------------

struct PoolCase {
  int64_t n, h, w, c;
  int size, stride, padding;
  bool ceil_mode;
};
const PoolCase kPoolCases[] = {
    {2, 8, 8, 16, 2, 2, 0, false},  {2, 9, 7, 5, 3, 2, 1, false},  {1, 6, 6, 3, 3, 2, 0, true},
    {3, 5, 5, 1, 2, 2, 0, true},    {2, 7, 7, 70, 3, 1, 1, false}, {1, 11, 11, 64, 3, 2, 1, true},
    {2, 4, 4, 130, 4, 4, 0, false}, {1, 7, 5, 8, 2, 3, 0, false},  {2, 16, 16, 64, 3, 2, 1, false},
    {1, 5, 9, 264, 3, 2, 1, false}, {3, 9, 5, 48, 3, 2, 1, false}};

int64_t extent(int64_t n, const PoolCase& k) {
  const int64_t room = n + 2 * k.padding - k.size;
  const int64_t p = (k.ceil_mode ? (room + k.stride - 1) / k.stride : room / k.stride) + 1;
  return k.ceil_mode && (p - 1) * k.stride >= n + k.padding ? p - 1 : p;
}

PoolArgs make_pool(const PoolCase& k, DType t, bool average, float beta) {
  const Shape x{k.n, k.h, k.w, k.c}, y{k.n, extent(k.h, k), extent(k.w, k), k.c};
  return {.x = gaussian(x, t, 1),
          .y = Tensor(y, t),
          .argmax = average ? Tensor() : Tensor(y, kU8),
          .dx = gaussian(x, t, 3),
          .dy = gaussian(y, t, 2),
          .size = k.size,
          .stride = k.stride,
          .padding = k.padding,
          .ceil_mode = k.ceil_mode,
          .average = average,
          .beta = beta};
}

TEST_P(Kernels, PoolingAgreesWithTheCpu) {
  for (DType t : {kF32, kBF16, kF16})
    for (const PoolCase& k : kPoolCases)
      for (bool average : {false, true})
        for (float beta : {0.f, 1.f}) {
          const PoolArgs a = make_pool(k, t, average, beta), b = there(a, GetParam());
          cpu::pool2d_forward(a), cuda::pool2d_forward(b);
          cpu::pool2d_backward(a), cuda::pool2d_backward(b);
          const std::string what = text(t, " case ", &k - kPoolCases, average ? " average" : " max");
          EXPECT_LT(difference(b.y, a.y), average ? bound(t) : 1e-12) << what;
          EXPECT_LT(difference(b.dx, a.dx), bound(t)) << what;
        }
}

// The image is refused before it is accessed, so it needs no memory.
TEST_P(Kernels, AnImageBeyond32BitsIsRefusedByPooling) {
  const auto blank = [&](const Shape& s) {
    return Tensor(s, kF16, std::make_shared<Storage>(nullptr, 2 * s.volume(), GetParam(), nullptr));
  };
  PoolArgs a;
  a.x = a.dx = blank({1, 32768, 32768, 2}), a.y = a.dy = blank({1, 16384, 16384, 2}), a.average = true;
  EXPECT_THROW(cuda::pool2d_forward(a), Error);
  EXPECT_THROW(cuda::pool2d_backward(a), Error);
}

TEST_P(Kernels, TheFirstOfEqualMaximaGetsTheGradientAndANanWins) {
  PoolArgs a = make_pool({1, 4, 4, 8, 2, 2, 0, false}, kF32, false, 0);
  a.x = Tensor::zeros(a.x.shape());
  a.x.data<float>()[8 + 3] = NAN;
  const PoolArgs b = there(a, GetParam());
  cuda::pool2d_forward(b), cuda::pool2d_backward(b);
  const std::vector<double> y = values(b.y), dx = values(b.dx), dy = values(b.dy);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(dx[0], dy[0]);
  EXPECT_EQ(dx[8], 0);
  EXPECT_EQ(dx[8 + 3], dy[3]);
}

// ---- around library calls --------------------------------------------------------------------------

TEST_P(Kernels, BlendAndFinishAreTheirFormulas) {
  for (DType t : {kF32, kBF16, kF16})
    for (const int64_t channels : {7, 10, 16}) {
      Tensor y = gaussian({6, channels}, t, 1), x = gaussian({6, channels}, kF32, 2),
             bias = gaussian({channels}, kF32, 3), residual = gaussian({6, channels}, t, 4);
      const std::vector<double> y0 = values(y), x0 = values(x), b0 = values(bias), r0 = values(residual);
      for (Tensor* each : {&y, &x, &bias, &residual}) move(*each, GetParam());
      cuda::blend(y, x, 0.5f);
      std::vector<double> want;
      for (size_t i = 0; i < y0.size(); ++i) want.push_back(x0[i] + 0.5 * y0[i]);
      EXPECT_TRUE(allclose(y, want)) << t;
      cuda::blend(y, x, 0);
      cuda::finish(y, bias, {}, true);
      for (size_t i = 0; i < y0.size(); ++i) want[i] = std::max(0., x0[i] + b0[i % size_t(channels)]);
      EXPECT_TRUE(allclose(values(y), want, 2 * tolerance(t))) << t;
      cuda::finish(y, {}, residual, false);
      for (size_t i = 0; i < y0.size(); ++i) want[i] += r0[i];
      EXPECT_TRUE(allclose(values(y), want, 3 * tolerance(t))) << t;
    }
}

// ---- the gradient of a mean --------------------------------------------------------------------------

TEST_P(Kernels, SpreadingIsTheSameByElementAndByPack) {
  const auto spread = [](const Shape& s, Axes axes, DType to, DType from, float beta, Device d,
                         bool aligned) {
    int64_t left = 1;
    for (int i = 0; i < s.rank(); ++i) left *= axes[size_t(i)] ? 1 : s[i];
    const Tensor x = gaussian({left}, from, 1), y = gaussian(s, to, 2);
    const Tensor there = aligned ? x.to(d) : unaligned(x, d), result = y.to(d).clone();
    spread_into(result, there, axes, 0.25f, beta);
    return values(result);
  };
  for (const DType to : {kF32, kBF16, kF16})
    for (const DType from : {to, kF32})
      for (const auto& [s, axes] : {std::pair{Shape{3, 5, 7, 24}, Axes{false, true, true, false}},
                                    {Shape{3, 5, 7, 10}, Axes{false, true, true, false}},
                                    {Shape{5, 3, 32}, Axes{false, true, true}},
                                    {Shape{4, 40}, Axes{true, false}}})
        for (const float beta : {0.f, 1.f})
          for (const bool aligned : {true, false})
            EXPECT_EQ(spread(s, axes, to, from, beta, GetParam(), aligned),
                      spread(s, axes, to, from, beta, kCpu, true))
                << to << from << s << beta;
}

}  // namespace
}  // namespace skein
