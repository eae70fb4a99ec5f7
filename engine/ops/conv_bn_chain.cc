// A chain of conv_bn. If the next convolution can normalize in its main loop, the tape's entries are cut at
// the raw images, so that the ReLU's output is not written and each weight's gradient is still final as early
// as possible. They are cut there, too, if norms are to be computed again rather than their output kept.
#include "engine/ops/batch_norm.h"
#include "engine/ops/conv2d.h"
#include "engine/raw_image.h"
#include "engine/recompute.h"

namespace skein {
namespace {

// f16 only: cuDNN has no weight gradient in bf16 that normalizes, so backward would need the very pass that
// was saved. Without a tape the image is not needed again, and in evaluation the norm is folded. An exporter
// needs the operations by name.
bool raw_between(const Tensor& x, size_t links, bool training) {
  return x.device().is_cuda() && x.dtype() == kF16 && links > 1 && training && Tape::current() &&
         !Outline::current();
}

// A convolution's result, to be normalized.
struct Raw {
  Tensor z;
  ChannelSums sums;
};

Raw begin(const Tensor& x, const ConvBnLink& l) {
  const Tensor w = l.w;
  const ConvGeometry g = l.geometry;
  const Tensor z(conv2d_shape(x, w, g), x.dtype(), x.device());
  const ChannelSums sums = conv2d_with_sums(x.device(), {.x = x, .w = w, .bias = {}, .y = z, .geometry = g});
  record({.op = "conv2d", .in = {x, w}, .out = z},
         [x, w, g](const Tensor& dz, Pull& pull) { pull_conv2d(pull, x, w, {}, dz, g); });
  return {z, sums};
}

void pull_raw(Pull& pull, RawImage& image, const ConvArgs& c) {
  BatchNormArgs& norm = image.norm;
  pull(c.w, [&](const Tensor& dw, float beta) {
    cuda::raw_conv2d_backward_weights(
        image, {.x = {}, .w = dw, .bias = {}, .y = c.y, .geometry = c.geometry, .beta = beta});
  });
  norm.y = {};
  if (!pull.wants(norm.x) && !pull.wants(norm.gamma) && !pull.wants(norm.shift)) return;
  pull(norm.gamma, [&](const Tensor& d, float beta) { norm.dgamma = d, norm.dgamma_beta = beta; });
  pull(norm.shift, [&](const Tensor& d, float beta) { norm.dshift = d, norm.dshift_beta = beta; });
  const Tensor dz(norm.x.shape(), norm.x.dtype(), norm.x.device());
  cuda::raw_conv2d_backward_data(image, {.x = dz, .w = c.w, .bias = {}, .y = c.y, .geometry = c.geometry});
  pull.give(norm.x, dz);
}

// The next convolution's result, computed from the previous one's and its norm.
Raw follow(const Raw& raw, const NormState& s, const ConvBnLink& l) {
  RawImage image = cuda::raw_image(norm_arguments(raw.z, s, {.relu = true}, raw.sums));
  const Tensor z(conv2d_shape(raw.z, l.w, l.geometry), raw.z.dtype(), raw.z.device());
  const ConvArgs c{.x = {}, .w = l.w, .bias = {}, .y = z, .geometry = l.geometry};
  const ChannelSums sums = cuda::raw_conv2d_forward(image, c);
  record({.op = "norm_conv2d", .in = {raw.z, s.gamma, s.shift, l.w}, .out = z},
         [image = std::move(image), w = l.w, g = l.geometry](const Tensor& dz, Pull& pull) mutable {
           pull_raw(pull, image, {.x = {}, .w = w, .bias = {}, .y = dz, .geometry = g});
         });
  return {z, sums};
}

// What may be computed again is the norm and ReLU between two convolutions, which reads its input anyway.
bool again_between(const Tensor& x, bool training) {
  return recompute_norms() && Tape::current() && training && !x.device().is_cuda() && !Outline::current();
}

void pull_again(Pull& pull, const KeptNorm& norm, const ConvArgs& c) {
  const Tensor& z = norm.args.x;
  pull(c.w, [&](const Tensor& dw, float beta) {
    BatchNormArgs a = norm.args;
    a.y = Tensor(z.shape(), z.dtype(), z.device());
    a.training = false;  // the batch's statistics are known
    batch_norm_forward(z.device(), a);
    conv2d_backward_weights(z.device(),
                            {.x = a.y, .w = dw, .bias = {}, .y = c.y, .geometry = c.geometry, .beta = beta});
  });
  const BatchNormArgs& a = norm.args;
  if (!pull.wants(z) && !pull.wants(a.gamma) && !pull.wants(a.shift)) return;
  const Tensor dz(z.shape(), z.dtype(), z.device());
  conv2d_backward_data(z.device(), {.x = dz, .w = c.w, .bias = {}, .y = c.y, .geometry = c.geometry});
  pull_norm(pull, norm, dz, dz, 0);
  pull.give(z, dz);
}

// The next convolution's result, computed from the previous one's by a normalized image that is not kept.
Raw follow_again(const Raw& raw, const NormState& s, const ConvBnLink& l) {
  const BatchNormArgs norm = norm_forward(raw.z, s, {.relu = true, .residual = {}}, raw.sums);
  const Tensor z(conv2d_shape(norm.y, l.w, l.geometry), raw.z.dtype(), raw.z.device());
  const ChannelSums sums =
      conv2d_with_sums(z.device(), {.x = norm.y, .w = l.w, .bias = {}, .y = z, .geometry = l.geometry});
  record({.op = "norm_conv2d", .in = {raw.z, s.gamma, s.shift, l.w}, .out = z},
         [norm = kept_of(norm), w = l.w, g = l.geometry](const Tensor& dz, Pull& pull) {
           pull_again(pull, norm, {.x = {}, .w = w, .bias = {}, .y = dz, .geometry = g});
         });
  return {z, sums};
}

}  // namespace

Tensor conv_bn_chain(const Tensor& x, const std::vector<ConvBnLink>& links, bool training, bool relu,
                     const std::function<Tensor()>& residual) {
  CHECK(!links.empty(), "a chain of no convolutions");
  for (const ConvBnLink& l : links) check_norm(Shape{l.w.dim(0)}, l.norm);
  const auto added = [&] { return residual ? residual() : Tensor(); };
  const ConvBnLink& last = links.back();
  const size_t before = links.size() - 1;
  const bool again = links.size() > 1 && again_between(x, training);
  if (again || raw_between(x, links.size(), training)) {
    const auto next = again ? follow_again : follow;
    Raw raw = begin(x, links[0]);
    for (size_t i = 1; i < before; ++i) raw = next(raw, links[i - 1].norm, links[i]);
    const NormMode mode{.training = true, .relu = relu, .residual = added()};
    raw = next(raw, links[before - 1].norm, last);
    return batch_norm(raw.z, last.norm, mode, raw.sums);
  }
  Tensor y = x;
  for (size_t i = 0; i < before; ++i)
    y = conv_bn(y, links[i].w, links[i].geometry, links[i].norm, {.training = training, .relu = true});
  return conv_bn(y, last.w, last.geometry, last.norm,
                 {.training = training, .relu = relu, .residual = added()});
}

}  // namespace skein
