// Convolution on cuDNN, with what follows it fused where that is faster and in a pass of our own where not.
#include "engine/cuda/batch_norm.h"
#include "engine/cuda/conv_run.h"
#include "engine/cuda/handles.h"
#include "engine/cuda/pointwise.h"
#include "engine/numerics.h"
#include "engine/ops/reduce.h"

namespace skein::cuda {
namespace {

Operands operands(const Tensor& x, const Tensor& w, const Tensor& y) {
  return {{kImageId, x}, {kWeightsId, w}, {kResultId, y}};
}

ConvProblem problem_of(ConvPass pass, const ConvArgs& c, const Tensor& w) {
  CHECK(c.x.rank() == 4 && w.rank() == 4 && c.y.rank() == 4, c.x.shape(), w.shape(), c.y.shape());
  const ConvGeometry& g = c.geometry;
  CHECK(g.groups > 0 && c.x.dim(3) == w.dim(3) * g.groups && w.dim(0) % g.groups == 0, c.x.shape(),
        w.shape());
  CHECK(c.x.dtype() == c.y.dtype(), c.x.dtype(), c.y.dtype());
  const ConvProblem k{.pass = pass,
                      .images = c.x.dtype(),
                      .weights = w.dtype(),
                      .n = c.x.dim(0),
                      .h = c.x.dim(1),
                      .w = c.x.dim(2),
                      .c = c.x.dim(3),
                      .o = w.dim(0),
                      .r = w.dim(1),
                      .s = w.dim(2),
                      .stride = g.stride,
                      .padding = g.padding,
                      .dilation = g.dilation,
                      .groups = g.groups,
                      .accumulate = c.beta == 1 && pass != ConvPass::kForward,
                      .tf32 = numerics().tf32,
                      .deterministic = numerics().deterministic,
                      .alignment = common_alignment({c.x.raw(), w.raw(), c.y.raw()})};
  CHECK(c.y.shape() == Shape({k.n, k.p(), k.q(), k.o}), "the result of", c.x.shape(), "and", w.shape(),
        "is not", c.y.shape());
  return k;
}

// What cannot be written where it belongs (another type, a factor not 0 or 1) is written beside it first.
bool direct(const Tensor& result, DType computed, float beta) {
  return result.dtype() == computed && (beta == 0 || beta == 1);
}

}  // namespace

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
  if (c.bias) fused.fused |= kBias, t.push_back({kBiasId, c.bias});
  if (c.residual) fused.fused |= kResidual, t.push_back({kResidualId, c.residual});
  if (c.relu) fused.fused |= kRelu;
  for (const Tensor* more : {&c.bias, &c.residual})
    if (*more) fused.alignment = std::min(fused.alignment, common_alignment({more->raw()}));
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
  all.push_back({kSumId, sums.sum});
  all.push_back({kSquaresId, sums.squares});
  ConvProblem fused = k;
  fused.fused = kSums;
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

// cuDNN sums over 16-bit images in f32, but gives the weights' gradient in their type only.
void conv2d_backward_weights(const ConvArgs& c) {
  CHECK(c.y.size() > 0, "a weight gradient over no pixels", c.x.shape());
  ConvArgs own = c;
  if (!direct(c.w, c.x.dtype(), c.beta)) own.w = Tensor(c.w.shape(), c.x.dtype(), c.w.device()), own.beta = 0;
  run(problem_of(ConvPass::kWeights, own, own.w), operands(c.x, own.w, c.y));
  if (own.w.raw() != c.w.raw()) blend(c.w, own.w, c.beta);
  if (c.bias) sum_to_shape(c.bias, c.y, c.beta);
}

}  // namespace skein::cuda
