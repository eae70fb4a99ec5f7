// Convolutions of raw images on cuDNN: normalized in the main loop, and the gradient through norm and ReLU.
#include "engine/raw_image.h"

#include "engine/cuda/batch_norm.h"
#include "engine/cuda/conv/conv_problem.h"
#include "engine/cuda/pointwise.h"

namespace skein::cuda {
namespace {

Tensor like(const Tensor& t) { return Tensor(t.shape(), t.dtype(), t.device()); }
Tensor channels(const Tensor& x, DType t = kF32) { return Tensor({x.dim(-1)}, t, x.device()); }

// Computes y in a separate pass.
Tensor made(const RawImage& image) {
  BatchNormArgs norm = image.norm;
  norm.y = like(norm.x);
  normalize(norm);
  return norm.y;
}

Operands map_of(const RawImage& image) { return {{kMapScaleId, image.scale}, {kMapBiasId, image.bias}}; }

// How many seconds longer the weight gradient takes without y than with it, for run_fused(). c.y serves as a
// gradient of its own shape.
double longer_weights(const RawImage& image, ConvArgs c) {
  c.w = like(c.w);
  RawImage whole = image;
  whole.norm.y = made(image);
  const auto time = [&](const RawImage& of) {
    return seconds_of(c.y.device(), [&] { cuda::raw_conv2d_backward_weights(of, c); });
  };
  return time(image) - time(whole);
}

}  // namespace

RawImage raw_image(const BatchNormArgs& norm) {
  CHECK(norm.training && norm.relu && !norm.residual, "a raw image is one before a training norm and a ReLU");
  RawImage image{norm, channels(norm.x, norm.x.dtype()), channels(norm.x, norm.x.dtype())};
  statistics(norm, {image.scale, image.bias});
  image.norm.sums = {};
  return image;
}

ChannelSums raw_conv2d_forward(RawImage& image, const ConvArgs& given) {
  ConvArgs c = given;
  c.x = image.norm.x;
  const Tensor w = as_type(c.w, c.x.dtype());
  const ChannelSums sums{channels(c.y), channels(c.y)};
  ConvProblem k = problem_of(ConvPass::kForward, c, w);
  Operands t = operands(c.x, w, c.y);
  fuse(k, t, kNormalize, map_of(image));
  fuse(k, t, kSums, {{kSumId, sums.sum}, {kSquaresId, sums.squares}});
  const auto from = [&](const Tensor& y) {
    c.x = y;
    return conv2d_with_sums(c);
  };
  const auto apart = [&] {
    if (from(made(image)).sum) return;
    BatchNormArgs norm;
    norm.x = c.y, norm.mean = sums.sum, norm.rstd = sums.squares;
    statistics(norm);
  };
  if (run_fused(k, t, apart, [&] { return longer_weights(image, c); })) return sums;
  return from(image.norm.y = made(image));
}

void raw_conv2d_backward_weights(const RawImage& image, const ConvArgs& given) {
  ConvArgs c = given;
  if (image.norm.y) {
    c.x = image.norm.y;
    return conv2d_backward_weights(c);
  }
  c.x = image.norm.x;
  const Tensor dw(c.w.shape(), c.x.dtype(), c.x.device());
  ConvArgs narrow = c;
  narrow.w = dw, narrow.beta = 0;
  ConvProblem k = problem_of(ConvPass::kWeights, narrow, dw);
  Operands t = operands(c.x, dw, c.y);
  fuse(k, t, kNormalize, map_of(image));
  const auto apart = [&] {
    ConvArgs plain = narrow;
    plain.x = made(image);
    conv2d_backward_weights(plain);
  };
  if (!run_fused(k, t, apart)) apart();
  blend(c.w, dw, c.beta);
}

void raw_conv2d_backward_data(const RawImage& image, const ConvArgs& c) {
  const Tensor w = as_type(c.w, c.y.dtype());
  BatchNormArgs norm = image.norm;
  norm.dy = norm.dx = c.x;  // a pass over both reads each element before it writes it
  const Tensor dgamma = channels(c.x), dshift = channels(c.x);
  const ConvProblem k = problem_of(ConvPass::kData, c, w);
  const Operands plain = operands(c.x, w, c.y);
  ConvProblem fused = k;
  Operands t = plain;
  fuse(fused, t, kNormGradient,
       {{kRawId, norm.x},
        {kMeanId, norm.mean},
        {kRstdId, norm.rstd},
        {kGammaId, norm.gamma},
        {kShiftId, norm.shift},
        {kGammaGradientId, dgamma},
        {kShiftGradientId, dshift},
        {kLineOfGradientId, channels(c.x)},  // we subtract the mean from x first, which loses less
        {kLineOfRawId, channels(c.x)},
        {kLineConstantId, channels(c.x)}});
  const auto apart = [&] {
    run(k, plain);
    BatchNormArgs sums = norm;
    sums.dx = {}, sums.dgamma = dgamma, sums.dshift = dshift;
    sums.dgamma_beta = sums.dshift_beta = 0;
    batch_norm_backward(sums);
  };
  if (run_fused(fused, t, apart)) return finish_gradient(norm, dgamma, dshift);
  run(k, plain);
  batch_norm_backward(norm);
}

}  // namespace skein::cuda
