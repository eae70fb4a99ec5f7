// Convolution, batch norm, residual add and ReLU as one differentiable op.
#include <cmath>

#include "engine/ops/batch_norm.h"
#include "engine/ops/conv2d.h"

namespace skein {
namespace {

bool recorded(std::initializer_list<Tensor> in) {
  const Tape* tape = Tape::current();
  if (tape)
    for (const Tensor& t : in)
      if (tape->wants(t)) return true;
  return false;
}

// Running statistics are an affine map per output channel: folded into the weights, the norm costs no pass
// over the image. w' = w * scale, bias' = shift - mean * scale, scale = gamma / sqrt(var + epsilon).
struct Fold {
  float *weights, *bias;
  const float *from, *gamma, *shift, *mean, *var;
  int64_t outputs, each;
  float epsilon;
  void operator()() const {
#pragma omp parallel for schedule(static)
    for (int64_t o = 0; o < outputs; ++o) {
      const float scale = gamma[o] / std::sqrt(var[o] + epsilon);
      bias[o] = shift[o] - mean[o] * scale;
      for (int64_t i = o * each; i < (o + 1) * each; ++i) weights[i] = scale * from[i];
    }
  }
};

Tensor folded(const Tensor& x, const Tensor& w, const ConvGeometry& g, const NormState& s, bool relu) {
  const int64_t outputs = w.dim(0);
  const Tensor fold(w.shape()), bias({outputs}), y(conv2d_shape(x, w, g), x.dtype(), x.device());
  const Fold f{fold.data<float>(),
               bias.data<float>(),
               w.data<float>(),
               s.gamma.data<float>(),
               s.shift.data<float>(),
               s.running_mean.data<float>(),
               s.running_var.data<float>(),
               outputs,
               w.size() / outputs,
               s.epsilon};
  keeps_calls() ? keep(f) : f();
  conv2d_forward(x.device(), {.x = x, .w = fold, .bias = bias, .y = y, .geometry = g, .relu = relu});
  return y;
}

Tensor listed(const Tensor& y, const Tensor& x, const Tensor& w, const ConvGeometry& g, const NormState& s,
              const NormMode& mode) {
  if (Outline* o = Outline::current()) {
    auto settings = settings_of(g);
    settings.merge(settings_of(s, mode));
    o->add({"conv_bn",
            {x, w, s.gamma, s.shift, s.running_mean, s.running_var, mode.residual},
            y,
            std::move(settings)});
  }
  return y;
}

}  // namespace

Tensor conv_bn(const Tensor& x, const Tensor& w, ConvGeometry g, const NormState& s, const NormMode& mode) {
  check_norm(Shape{w.dim(0)}, s);
  if (!mode.training && !mode.residual && !x.device().is_cuda() && !recorded({x, w, s.gamma, s.shift}))
    return listed(folded(x, w, g, s, mode.relu), x, w, g, s, mode);
  Tensor z(conv2d_shape(x, w, g), x.dtype(), x.device());
  conv2d_forward(x.device(), {.x = x, .w = w, .bias = {}, .y = z, .geometry = g});
  BatchNormArgs norm = norm_forward(z, s, mode);
  const Tensor y = listed(norm.y, x, w, g, s, mode);
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
