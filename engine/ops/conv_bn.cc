// Convolution, batch norm, residual add and ReLU as one differentiable op.
#include "engine/ops/batch_norm.h"
#include "engine/ops/conv2d.h"
#include "engine/ops/fold.h"

namespace skein {
namespace {

// Folded, the norm costs no pass over the image. CUDA's convolutions take 16-bit weights directly.
Tensor folded(const Tensor& x, const Tensor& w, const ConvGeometry& g, const NormState& s,
              const NormMode& mode) {
  const Folded f = fold_norm(w, s, x.device().is_cuda() ? x.dtype() : kF32);
  Tensor y(conv2d_shape(x, w, g), x.dtype(), x.device());
  conv2d_forward(x.device(), {.x = x,
                              .w = f.w,
                              .bias = f.bias,
                              .y = y,
                              .geometry = g,
                              .relu = mode.relu,
                              .residual = mode.residual});
  return y;
}

}  // namespace

Tensor conv_bn(const Tensor& x, const Tensor& w, ConvGeometry g, const NormState& s, const NormMode& mode) {
  check_norm(Shape{w.dim(0)}, s);
  const Device d = x.device();
  Operation op{.op = "conv_bn",
               .in = {x, w, s.gamma, s.shift, s.running_mean, s.running_var, mode.residual},
               .out = {},
               .settings = [&] {
                 Settings all = settings_of(g);
                 all.merge(settings_of(s, mode));
                 return all;
               }};
  const bool adds = mode.residual && !d.is_cuda();  // the CPU's convolutions cannot add a residual
  if (!mode.training && !adds && !wanted(op.in)) {
    op.out = folded(x, w, g, s, mode);
    return record(op, nullptr);
  }
  const Tensor z(conv2d_shape(x, w, g), x.dtype(), d);
  const ConvArgs conv{.x = x, .w = w, .bias = {}, .y = z, .geometry = g};
  ChannelSums sums;
  if (mode.training)
    sums = conv2d_with_sums(d, conv);
  else
    conv2d_forward(d, conv);
  const BatchNormArgs norm = norm_forward(z, s, mode, sums);
  op.out = norm.y;
  return record(op, [x, w, g, norm = kept_of(norm)](const Tensor& dy, Pull& pull) mutable {
    const Tensor dz(dy.shape(), dy.dtype(), dy.device());
    pull_norm(pull, norm, dy, dz, 0);
    norm = {};  // frees the convolution's output before the gradients of its inputs are allocated
    pull_conv2d(pull, x, w, {}, dz, g);
  });
}

}  // namespace skein
