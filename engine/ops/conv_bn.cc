// Convolution, batch norm, residual add and ReLU as one differentiable op.
#include "engine/ops/batch_norm.h"
#include "engine/ops/conv2d.h"

namespace skein {

Tensor conv_bn(const Tensor& x, const Tensor& w, ConvGeometry g, const NormState& s, const NormMode& mode) {
  if (!mode.training && on_tape({x, w, s.gamma, s.shift, mode.residual}))
    return norm_by_running(conv2d(x, w, {}, g), s, mode);
  Tensor z(conv2d_shape(x, w, g), x.dtype(), x.device());
  conv2d_forward(x.device(), {.x = x, .w = w, .bias = {}, .y = z, .geometry = g});
  BatchNormArgs norm = norm_forward(z, s, mode);
  const Tensor y = norm.y;
  z = {};
  return record({x, w, s.gamma, s.shift, mode.residual}, y,
                [x, w, g, norm = std::move(norm)](const Tensor& dy, Pull& pull) mutable {
                  const Tensor dz(dy.shape(), dy.dtype(), dy.device());
                  pull_norm(pull, norm, dy, dz, 0);
                  norm = {};  // the convolution's output dies before the gradients of its inputs are born
                  pull_conv2d(pull, x, w, {}, dz, g);
                });
}

}  // namespace skein
