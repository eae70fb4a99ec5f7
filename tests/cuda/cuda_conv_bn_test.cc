// conv_bn on a GPU, fused by rule and by measurement, against the separate parts on the CPU.
#include "engine/numerics.h"
#include "tests/cuda/against_cpu.h"

namespace skein {
namespace {
using namespace testing;

class CudaConvBn : public OnDevice {
 protected:
  void TearDown() override { numerics() = {}; }
};
INSTANTIATE_TEST_SUITE_P(Devices, CudaConvBn, ::testing::Values(kFirstGpu), device_name);

struct ConvBnCase {
  Shape x;
  int64_t out;
  int kernel, stride;
};
// The widening one is fused by rule, the others if a kernel is ready or measured to be faster.
const ConvBnCase kConvBnCases[] = {
    {{16, 28, 28, 64}, 256, 1, 1}, {{4, 14, 14, 64}, 64, 3, 1}, {{4, 15, 15, 32}, 48, 3, 2}};

struct Outcome {
  std::vector<double> y, mean, var, dx, dw, dgamma, dresidual;
};

Outcome run(const ConvBnCase& k, DType t, bool training, bool relu, bool add, bool taped, Device d,
            bool in_parts) {
  const ConvGeometry g{.stride = k.stride, .padding = k.kernel / 2};
  const Tensor x = random_normal(k.x, 1, 1, t).to(d);
  const Tensor w = random_normal({k.out, k.kernel, k.kernel, k.x[3]}, 2, 0.1f).to(d);
  const Shape out{k.x[0], (k.x[1] - 1) / k.stride + 1, (k.x[2] - 1) / k.stride + 1, k.out};
  const Tensor residual = add ? random_normal(out, 3, 1, t).to(d) : Tensor();
  const NormState s{random_uniform({k.out}, 4, 0.5f, 2).to(d), random_normal({k.out}, 5).to(d),
                    random_normal({k.out}, 6).to(d), random_uniform({k.out}, 7, 0.5f, 2).to(d)};
  const NormMode mode{.training = training, .relu = relu, .residual = residual};
  const auto f = [&] {
    return in_parts ? batch_norm(conv2d(x, w, {}, g), s, mode) : conv_bn(x, w, g, s, mode);
  };
  Outcome r;
  if (!taped) {
    r.y = values(f());
    return r;
  }
  Tape tape;
  Values leaves{x, w, s.gamma}, grads;
  if (add) leaves.push_back(residual);
  for (const Tensor& leaf : leaves)
    tape.watch(leaf, grads.emplace_back(Tensor(leaf.shape(), leaf.dtype(), d)));
  const Tensor y = f(), weights = random_uniform(out, 8, -1, 1, t).to(d);
  r.y = values(y);
  tape.backward(sum(mul(y, weights)));
  r.mean = values(s.running_mean), r.var = values(s.running_var);
  r.dx = values(grads[0]), r.dw = values(grads[1]), r.dgamma = values(grads[2]);
  if (add) r.dresidual = values(grads[3]);
  return r;
}

void compare(Device d, bool taped) {
  for (const bool measure : {false, true})
    for (const DType t : {kF32, kBF16, kF16})
      for (const ConvBnCase& k : kConvBnCases)
        for (unsigned bits = 0; bits < 8; ++bits) {
          if (measure && &k == kConvBnCases) continue;  // it takes long, and the rule fuses it anyway
          const bool training = bits & 1, relu = bits & 2, add = bits & 4;
          numerics().measure = measure;
          const Outcome got = run(k, t, training, relu, add, taped, d, false);
          const Outcome want = run(k, t, training, relu, add, taped, kCpu, true);
          const double bound = t == kF32 ? 2e-5 : t == kF16 ? 4e-3 : 2e-2;
          // Two values so near zero that rounding flips their ReLU: each counts some 2.5 rms of a gradient.
          const double flips = relu ? 5 / std::sqrt(double(got.y.size())) : 0;
          SCOPED_TRACE(text(t, " case ", &k - kConvBnCases, " bits ", bits, measure ? " measured" : ""));
          EXPECT_LT(distance(got.y, want.y), bound);
          if (!taped) continue;
          EXPECT_LT(distance(got.mean, want.mean), 1e-4);
          EXPECT_LT(distance(got.var, want.var), t == kF32 ? 1e-5 : 2e-3);
          EXPECT_LT(distance(got.dx, want.dx), 4 * bound + flips);
          EXPECT_LT(distance(got.dw, want.dw), 4 * bound + flips);
          EXPECT_LT(distance(got.dgamma, want.dgamma), 4 * bound + flips);
          EXPECT_LT(distance(got.dresidual, want.dresidual), 4 * bound + flips);
        }
}

TEST_P(CudaConvBn, OffTheTapeIsWhatItsPartsAre) { compare(GetParam(), false); }
TEST_P(CudaConvBn, GradientsAreThoseOfItsParts) { compare(GetParam(), true); }

TEST_P(CudaConvBn, RepeatsItselfBitForBitWhereAsked) {
  numerics().deterministic = true;
  for (const DType t : {kBF16, kF16}) {
    const Outcome a = run(kConvBnCases[0], t, true, true, true, true, GetParam(), false);
    const Outcome b = run(kConvBnCases[0], t, true, true, true, true, GetParam(), false);
    EXPECT_EQ(a.y, b.y) << t;
    EXPECT_EQ(a.var, b.var) << t;
    EXPECT_EQ(a.dw, b.dw) << t;
  }
}

}  // namespace
}  // namespace skein
