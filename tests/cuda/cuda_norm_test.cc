// Batch norm's CUDA kernels against the CPU's: as loops on the host and, with a GPU, as kernels.
#include "engine/cuda/batch_norm.h"
#include "engine/device/memory.h"
#include "tests/cuda/against_cpu.h"

namespace skein {
namespace {
using namespace testing;

class Norms : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Norms, kDevices,
                         [](const auto& p) { return p.param.is_cuda() ? "device" : "loops"; });

BatchNormArgs make_norm(const Shape& s, DType t, unsigned bits, float offset = 0.5f) {
  const int64_t c = s[s.rank() - 1];
  BatchNormArgs a;
  a.x = gaussian(s, t, 1, offset), a.y = Tensor(s, t);
  a.gamma = gaussian({c}, kF32, 2, 1), a.shift = gaussian({c}, kF32, 3);
  a.running_mean = gaussian({c}, kF32, 4), a.running_var = random_uniform({c}, 5, 1, 3);
  a.training = bits & 1, a.relu = bits & 2;
  if (a.training) a.mean = Tensor({c}), a.rstd = Tensor({c});
  if (bits & 4) a.residual = gaussian(s, t, 6);
  return a;
}

void give_gradients(BatchNormArgs& a, unsigned bits) {
  const int64_t c = a.gamma.size();
  const bool in_place = bits & 16;
  a.dy = gaussian(a.x.shape(), a.x.dtype(), 7), a.dx = gaussian(a.x.shape(), a.x.dtype(), 8);
  a.dgamma = gaussian({c}, kF32, 9), a.dshift = gaussian({c}, kF32, 10);
  a.dresidual = in_place ? a.dy : gaussian(a.x.shape(), a.x.dtype(), 11);
  a.dx_beta = a.dgamma_beta = a.dshift_beta = bits & 8 ? 1.f : 0.f;
  a.dresidual_beta = in_place ? 0 : a.dx_beta;
}

void expect_norm(BatchNormArgs a, unsigned bits, Device d, const std::string& what) {
  BatchNormArgs b = there(a, d);
  cpu::batch_norm_forward(a);
  cuda::batch_norm_forward(b);
  EXPECT_LT(difference(b.y, a.y), bound(a.x.dtype())) << what;
  EXPECT_LT(difference(b.running_mean, a.running_mean), 3e-6) << what;
  EXPECT_LT(difference(b.running_var, a.running_var), 3e-6) << what;
  if (a.training) {
    EXPECT_LT(difference(b.mean, a.mean), 5e-6) << what;
    EXPECT_LT(difference(b.rstd, a.rstd), 1e-5) << what;
  }
  give_gradients(a, bits);
  b = there(a, d);  // with the CPU's y and statistics: the masks are the same
  cpu::batch_norm_backward(a);
  cuda::batch_norm_backward(b);
  EXPECT_LT(difference(b.dx, a.dx), bound(a.x.dtype())) << what;
  EXPECT_LT(difference(b.dresidual, a.dresidual), bound(a.x.dtype())) << what;
  EXPECT_LT(difference(b.dgamma, a.dgamma), 3e-5) << what;
  EXPECT_LT(difference(b.dshift, a.dshift), 3e-5) << what;
}

TEST_P(Norms, BatchNormAgreesWithTheCpuInEveryMode) {
  for (DType t : {kF32, kBF16, kF16})
    for (const Shape& s :
         {Shape{4, 5, 7, 3}, Shape{2, 8, 8, 16}, Shape{7, 1}, Shape{33, 5}, Shape{2, 9, 14, 64},
          Shape{3, 4, 4, 100}, Shape{2, 9, 9, 130}, Shape{2, 7, 7, 512}})
      for (unsigned bits = 0; bits < 32; ++bits)
        expect_norm(make_norm(s, t, bits), bits, GetParam(), text(t, ' ', s, " bits ", bits));
}

// Covers thousands of channels, and so few that a row holds many pixels, with several chunks of pieces each.
TEST_P(Norms, SumsOfManyPiecesAgreeWithTheCpu) {
  for (const Shape& s :
       {Shape{12, 14, 14, 2048}, Shape{64, 32, 32, 16}, Shape{3, 65, 67, 24}, Shape{37, 41, 3}})
    for (unsigned bits : {1u, 3u, 31u})
      expect_norm(make_norm(s, kBF16, bits), bits, GetParam(), text(s, " bits ", bits));
}

// Sums for every one or two rows would take more bytes than the image.
TEST_P(Norms, PartialSumsTakeAtMostAQuarterOfA16BitImage) {
  for (const Shape& s : {Shape{32, 32, 32, 16}, Shape{16, 16, 16, 64}, Shape{64, 8, 8, 512}}) {
    BatchNormArgs a = there(make_norm(s, kBF16, 3), GetParam());
    const auto more_than_before = [&](auto f) {
      reset_peak(GetParam());
      const int64_t before = memory_use(GetParam()).now;
      f();
      return memory_use(GetParam()).peak - before;
    };
    const int64_t most = a.x.bytes() / 4 + a.x.bytes() / 32;  // and their sums in double
    EXPECT_LE(more_than_before([&] { cuda::batch_norm_forward(a); }), most) << s;
    a.dy = a.dx = there(make_norm(s, kBF16, 3), GetParam()).x;
    EXPECT_LE(more_than_before([&] { cuda::batch_norm_backward(a); }), most) << s;
  }
}

TEST_P(Norms, BatchNormOfViewsThatAreNotAligned) {
  for (Tensor BatchNormArgs::*one : {&BatchNormArgs::x, &BatchNormArgs::gamma, &BatchNormArgs::shift,
                                     &BatchNormArgs::mean, &BatchNormArgs::dx}) {
    BatchNormArgs a = make_norm({4, 6, 6, 8}, kF32, 3);
    give_gradients(a, 0);
    BatchNormArgs b = there(a, GetParam());
    b.*one = unaligned(a.*one, GetParam());
    cpu::batch_norm_forward(a), cpu::batch_norm_backward(a);
    cuda::batch_norm_forward(b), cuda::batch_norm_backward(b);
    EXPECT_LT(difference(b.y, a.y), 1e-5);
    EXPECT_LT(difference(b.dx, a.dx), 1e-5);
  }
}

TEST_P(Norms, VarianceSurvivesAMeanAThousandTimesLarger) {
  BatchNormArgs a = make_norm({4096, 24}, kF32, 1, 1000.f), b = there(a, GetParam());
  cpu::batch_norm_forward(a);
  cuda::batch_norm_forward(b);
  EXPECT_LT(difference(b.y, a.y), 1e-4);  // the mean itself is rounded to 24 bits
  EXPECT_LT(difference(b.rstd, a.rstd), 1e-5);
}

TEST_P(Norms, BatchNormRepeatsItselfBitForBit) {
  const BatchNormArgs a = make_norm({8, 16, 16, 24}, kBF16, 3);
  BatchNormArgs b = there(a, GetParam()), c = there(a, GetParam());
  cuda::batch_norm_forward(b);
  cuda::batch_norm_forward(c);
  EXPECT_EQ(values(b.y), values(c.y));
  EXPECT_EQ(values(b.rstd), values(c.rstd));
}

TEST_P(Norms, BatchNormOfANanIsNan) {
  BatchNormArgs a = make_norm({64, 8}, kF32, 3);
  a.x.data<float>()[8 * 8 + 3] = NAN;
  const BatchNormArgs b = there(a, GetParam());
  cuda::batch_norm_forward(b);
  const std::vector<double> y = values(b.y);
  EXPECT_TRUE(std::isnan(y[3]) && std::isnan(y[8 * 63 + 3]) && !std::isnan(y[4]));
}

// Sums as a convolution returns them: f32, around zero.
ChannelSums sums_of(const Tensor& x, Device d) {
  const int64_t c = x.dim(-1);
  const std::vector<double> v = values(x);
  std::vector<float> sum(static_cast<size_t>(c)), squares(sum);
  for (int64_t i = 0; i < x.size(); ++i)
    sum[size_t(i % c)] += float(v[size_t(i)]), squares[size_t(i % c)] += float(v[size_t(i)] * v[size_t(i)]);
  return {Tensor::of<float>({c}, sum).to(d), Tensor::of<float>({c}, squares).to(d)};
}

TEST_P(Norms, BatchNormFromSumsIsBatchNorm) {
  for (DType t : {kF32, kBF16})
    for (const Shape& s : {Shape{4, 5, 7, 3}, Shape{2, 8, 8, 16}, Shape{2, 9, 9, 130}})
      for (const float offset : {0.f, 3.f, 1000.f}) {  // squares cancel a little, and then completely
        BatchNormArgs a = make_norm(s, t, 7, offset), b = there(a, GetParam());
        b.sums = sums_of(a.x, GetParam());
        cpu::batch_norm_forward(a);
        cuda::batch_norm_forward(b);
        const std::string what = text(t, ' ', s, " offset ", offset);
        EXPECT_LT(difference(b.y, a.y), offset > 0 ? 10 * bound(t) : bound(t)) << what;
        EXPECT_LT(difference(b.rstd, a.rstd), 2e-5) << what;
        EXPECT_LT(difference(b.running_mean, a.running_mean), 3e-6) << what;
        EXPECT_LT(difference(b.running_var, a.running_var), 3e-5) << what;
      }
}

TEST_P(Norms, AConstantChannelFromSumsHasNoVariance) {
  BatchNormArgs a = make_norm({50, 8}, kF32, 1), b = there(a, GetParam());
  for (const Tensor& x : {a.x}) fill_uniform(x, draw(1), 0.7f, 0.7f);
  copy_bytes(b.x, a.x);
  b.sums = sums_of(a.x, GetParam());
  cuda::batch_norm_forward(b);
  for (const double r : values(b.rstd)) EXPECT_NEAR(r, 1 / std::sqrt(1e-5), 1e-2);
}

TEST_P(Norms, BitsInTheOutputsPlaceMaskTheSameGradient) {
  for (const Shape& s : {Shape{2, 8, 8, 16}, Shape{3, 5, 4, 24}, Shape{2, 7, 7, 512}})
    for (unsigned bits : {7u, 15u, 23u}) {
      BatchNormArgs a = there(make_norm(s, kBF16, bits), GetParam());
      a.mask = Tensor({a.x.size() / 8}, kU8, GetParam());
      cuda::batch_norm_forward(a);
      BatchNormArgs b = there(a, kCpu);
      give_gradients(b, bits);
      a = there(b, GetParam());
      b = there(b, GetParam());
      a.y = {};
      b.mask = {};
      cuda::batch_norm_backward(a);
      cuda::batch_norm_backward(b);
      for (auto [x, y] : {std::pair{a.dx, b.dx}, {a.dresidual, b.dresidual}, {a.dgamma, b.dgamma}})
        EXPECT_EQ(values(x), values(y)) << s << " bits " << bits;
    }
}

TEST_P(Norms, AMaskIsRefusedWhereItCannotBeWritten) {
  for (const auto& [s, t] : {std::pair{Shape{4, 8}, kF32}, {Shape{8, 9}, kBF16}}) {
    BatchNormArgs a = there(make_norm(s, t, 7), GetParam());
    a.mask = Tensor({a.x.size() / 8}, kU8, GetParam());
    EXPECT_THROW(cuda::batch_norm_forward(a), Error);
  }
}

// ---- the halves of batch norm, when a library does the other half -----------------------------------------

// Half of the last bit of a value of that size in f16.
double rounding(double v) { return std::ldexp(std::abs(v), -11) + std::ldexp(1., -25); }

TEST_P(Norms, StatisticsComeWithTheNormAsAScaleAndABias) {
  for (const float offset : {0.f, 3.f, 100.f}) {
    BatchNormArgs a = there(make_norm({8, 5, 5, 24}, kF16, 3, offset), GetParam());
    a.y = {};
    const Tensor scale({24}, kF16, GetParam()), bias({24}, kF16, GetParam());
    cuda::statistics(a, {scale, bias});
    const auto s = values(scale), b = values(bias), mean = values(a.mean), rstd = values(a.rstd),
               gamma = values(a.gamma), shift = values(a.shift);
    for (size_t c = 0; c < 24; ++c) {
      EXPECT_NEAR(s[c], gamma[c] * rstd[c], rounding(gamma[c] * rstd[c]) * 1.001) << offset;
      // The bias for the rounded scale: at the mean there is only one error.
      const double exact = shift[c] - mean[c] * s[c];
      EXPECT_NEAR(b[c], exact, rounding(exact) * 1.001) << offset;
    }
  }
}

TEST_P(Norms, AConstantChannelBecomesItsShift) {
  BatchNormArgs a = make_norm({64, 8}, kF16, 3);
  fill_uniform(a.x, draw(1), 7.f, 7.f);
  a = there(a, GetParam());
  const Tensor scale({8}, kF16, GetParam()), bias({8}, kF16, GetParam());
  cuda::statistics(a, {scale, bias});
  const auto s = values(scale), b = values(bias), shift = values(a.shift);
  for (size_t c = 0; c < 8; ++c) EXPECT_NEAR(7 * s[c] + b[c], shift[c], rounding(shift[c])) << c;
}

TEST_P(Norms, AScaleThatF16CannotHoldIsItsLargestNumber) {
  BatchNormArgs a = make_norm({64, 8}, kF16, 3);
  fill_uniform(a.x, draw(1), 0.f, 0.f);  // rstd is 1 / sqrt(epsilon)
  fill_uniform(a.gamma, draw(1), 1e4f, 1e4f);
  a.gamma.data<float>()[3] = -1e4f;
  a = there(a, GetParam());
  const Tensor scale({8}, kF16, GetParam()), bias({8}, kF16, GetParam());
  cuda::statistics(a, {scale, bias});
  EXPECT_EQ(values(scale)[0], 65504);
  EXPECT_EQ(values(scale)[3], -65504);
  for (const double b : values(bias)) EXPECT_LE(std::abs(b), 65504);
}

TEST_P(Norms, NormalizingIsTheSecondHalfOfForward) {
  for (DType t : {kF32, kF16}) {
    const BatchNormArgs a = there(make_norm({2, 9, 9, 40}, t, 7), GetParam());
    cuda::batch_norm_forward(a);
    BatchNormArgs b = a;
    b.y = Tensor(a.y.shape(), t, GetParam());
    cuda::normalize(b);
    EXPECT_EQ(values(b.y), values(a.y)) << t;
  }
}

TEST_P(Norms, AGradientIsFinishedFromItsSumsInPlace) {
  for (DType t : {kF32, kF16})
    for (const Shape& s : {Shape{2, 9, 9, 40}, Shape{3, 5, 4, 7}}) {
      BatchNormArgs a = make_norm(s, t, 3);
      give_gradients(a, 8);
      a.dresidual = {}, a.dx_beta = 0;
      cpu::batch_norm_forward(a);
      BatchNormArgs b = there(a, GetParam());
      cpu::batch_norm_backward(a);
      // What a library's kernel returns: the masked gradient and its sums.
      BatchNormArgs sums = b;
      sums.dgamma = Tensor(b.dgamma.shape(), kF32, GetParam());
      sums.dshift = Tensor(b.dshift.shape(), kF32, GetParam());
      sums.dgamma_beta = sums.dshift_beta = sums.dresidual_beta = 0;
      sums.dx = {}, sums.dresidual = b.dy;
      cuda::batch_norm_backward(sums);
      b.y = {}, b.dx = b.dy;
      cuda::finish_gradient(b, sums.dgamma, sums.dshift);
      EXPECT_LT(difference(b.dx, a.dx), bound(t)) << t << s;
      EXPECT_LT(difference(b.dgamma, a.dgamma), 3e-5) << t << s;
      EXPECT_LT(difference(b.dshift, a.dshift), 3e-5) << t << s;
    }
}

}  // namespace
}  // namespace skein
