// Convolution on cuDNN. What follows it is fused if that is faster, else done in a pass of our own.
#include "engine/cuda/batch_norm.h"
#include "engine/cuda/conv/conv_problem.h"
#include "engine/cuda/pointwise.h"

namespace skein::cuda {
void conv2d_forward(const ConvArgs& c) {
  const Tensor w = as_type(c.w, c.x.dtype());
  const ConvProblem k = problem_of(ConvPass::kForward, c, w);
  if (c.y.size() == 0) return;
  Operands t = operands(c.x, w, c.y);
  const auto apart = [&, plain = t] {
    run(k, plain);
    finish(c.y, c.bias, c.residual, c.relu);
  };
  ConvProblem fused = k;
  if (c.bias) fuse(fused, t, kBias, {{kBiasId, c.bias}});
  if (c.residual) fuse(fused, t, kResidual, {{kResidualId, c.residual}});
  if (c.relu) fuse(fused, t, kRelu, {});
  if (!fused.fused || !run_fused(fused, t, apart)) apart();
}

ChannelSums conv2d_with_sums(const ConvArgs& c) {
  CHECK(!c.bias && !c.residual && !c.relu, "sums are of the convolution alone");
  const Tensor w = as_type(c.w, c.x.dtype());
  const ConvProblem k = problem_of(ConvPass::kForward, c, w);
  if (c.y.size() == 0) return {};
  const ChannelSums sums{Tensor({k.o}, kF32, c.x.device()), Tensor({k.o}, kF32, c.x.device())};
  const Operands plain = operands(c.x, w, c.y);
  Operands all = plain;
  ConvProblem fused = k;
  fuse(fused, all, kSums, {{kSumId, sums.sum}, {kSquaresId, sums.squares}});
  const auto apart = [&] {
    run(k, plain);
    BatchNormArgs norm;
    norm.x = c.y, norm.mean = sums.sum, norm.rstd = sums.squares;
    statistics(norm);
  };
  if (run_fused(fused, all, apart)) return sums;
  run(k, plain);
  return {};
}

void conv2d_backward_data(const ConvArgs& c) {
  if (c.x.size() == 0) return;
  const Tensor w = as_type(c.w, c.y.dtype());
  ConvArgs own = c;
  if (!direct(c.x, c.y.dtype(), c.beta)) own.x = Tensor(c.x.shape(), c.y.dtype(), c.x.device()), own.beta = 0;
  run(problem_of(ConvPass::kData, own, w), operands(own.x, w, c.y));
  if (own.x.raw() != c.x.raw()) blend(c.x, own.x, c.beta);
}

// cuDNN sums over 16-bit images in f32, but writes the weights' gradient only in their type. A result that
// cannot be written in place goes to scratch memory first.
void conv2d_backward_weights(const ConvArgs& c) {
  CHECK(c.y.size() > 0, "a weight gradient over no pixels", c.x.shape());
  ConvArgs own = c;
  if (!direct(c.w, c.x.dtype(), c.beta)) own.w = Tensor(c.w.shape(), c.x.dtype(), c.w.device()), own.beta = 0;
  run(problem_of(ConvPass::kWeights, own, own.w), operands(c.x, own.w, c.y));
  if (own.w.raw() != c.w.raw()) blend(c.w, own.w, c.beta);
}

}  // namespace skein::cuda
