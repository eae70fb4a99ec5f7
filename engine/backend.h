// The primitives of the seam, taken from vendor libraries or written per processor: the rows of
// engine/seam.def that both engine/cpu/ and engine/cuda/ define. Layouts: images NHWC, convolution weights
// OHWI, both dense. Activations are f32, bf16 or f16; weights, their gradients, statistics and affine
// parameters are f32 whatever the activations are. A backend makes and caches the low-precision or blocked
// copies its library wants.
#pragma once
#include "engine/seam.h"
#include "engine/tensor.h"

namespace skein {

// y[m,n] <- op(a) op(b) + beta y (+ bias[n] if given). op transposes where ta / tb. a, b, y: floating
// types, each on its own; sums in f32.
struct GemmArgs {
  Tensor y, a, b;
  bool ta = false, tb = false;
  float beta = 0;
  Tensor bias = {};
  template <class F>
  void each_tensor(F f) {
    for (Tensor* t : {&y, &a, &b, &bias}) f(*t);
  }
};

struct ConvGeometry {
  int stride = 1, padding = 0, dilation = 1, groups = 1;
  bool operator==(const ConvGeometry&) const = default;
};

// Sums over all but the last axis of x and of x^2, in f32, of a 16-bit x before it is rounded. Both are empty
// if they were not taken.
struct ChannelSums {
  Tensor sum, squares;  // [C] f32
};

// x [N,H,W,C], w [O,R,S,C/groups] f32, bias [O] f32 or empty, y [N,P,Q,O].
//   forward            y <- conv(x, w) + bias          (CUDA: + residual, like y; relu: then max(0, .), where
//                                                       a NaN stays one on the CPU)
//                      sums <- those of y              (CPU, if given; see sums_for())
//   backward_data      x (a gradient) <- conv^T(y, w) + beta x
//   backward_weights   w (a gradient) <- sum x * y + beta w
// Of the gradients bias and relu take no part. CPU: residual must be empty. Sums are of a convolution without
// bias and relu.
struct ConvArgs {
  Tensor x, w, bias, y;
  ConvGeometry geometry;
  float beta = 0;
  bool relu = false;
  Tensor residual = {};
  ChannelSums sums = {};
  template <class F>
  void each_tensor(F f) {
    for (Tensor* t : {&x, &w, &bias, &y, &residual, &sums.sum, &sums.squares}) f(*t);
  }
};

// Windows of `size`; average counts padding as torchvision's models do not (count_include_pad = false).
struct PoolArgs {
  Tensor x, y;    // [N,H,W,C], [N,P,Q,C]
  Tensor argmax;  // max only: u8 [N,P,Q,C], position in the window; written forward, read backward
  Tensor dx, dy;  // backward: dx <- ... + beta dx
  int size = 2, stride = 2, padding = 0;
  bool ceil_mode = false, average = false;
  float beta = 0;
  template <class F>
  void each_tensor(F f) {
    for (Tensor* t : {&x, &y, &argmax, &dx, &dy}) f(*t);
  }
};

// Batch normalization over all but the last axis, with optional residual add and ReLU, in few passes.
//   forward, training    mean, rstd <- statistics of x; running <- (1-momentum) running + momentum * (mean,
//                        unbiased variance); y <- relu?((x - mean) rstd gamma + shift + residual)
//   forward, evaluation  the running statistics instead, or on the CPU mean and rstd if they are given
//   backward             dgamma, dshift <- ... + dgamma_beta dgamma, dshift_beta dshift;
//                        dx <- ... + dx_beta dx;
//                        dresidual <- dy masked by y > 0, + dresidual_beta dresidual
// In evaluation mode backward treats the running statistics as constants. The ReLU's mask is y > 0; without y
// it is recomputed from x, if nothing was added and shift is given. dresidual may be empty; it may be dy
// itself (masked in place). Forward takes its statistics from `sums`, if they are given, instead of reading x
// for them. On CUDA, `mask` may replace y: forward writes it, only for 16-bit types whose packs of 8 are
// aligned, and backward reads it.
// Large class: the arguments of two functions, forward and backward, which share most of them.
struct BatchNormArgs {
  Tensor x, y, residual;             // [..., C], one floating type
  Tensor gamma, shift;               // [C] f32
  Tensor running_mean, running_var;  // [C] f32
  Tensor mean, rstd;                 // [C] f32
  bool training = true, relu = false;
  float momentum = 0.1f, epsilon = 1e-5f;
  Tensor dy, dx, dresidual, dgamma, dshift;
  float dx_beta = 0, dresidual_beta = 0, dgamma_beta = 0, dshift_beta = 0;
  ChannelSums sums;
  Tensor mask;  // u8 [elements of x / 8]: bit i % 8 of byte i / 8 says that y[i] > 0
  template <class F>
  void each_tensor(F f) {
    for (Tensor* t : {&x, &y, &residual, &gamma, &shift, &running_mean, &running_var, &mean, &rstd, &dy, &dx,
                      &dresidual, &dgamma, &dshift, &sums.sum, &sums.squares, &mask})
      f(*t);
  }
};

// The same windows without ownership of their memory; a recording keeps its calls' arguments like this.
template <class Args>
Args unowned_args(Args a) {
  a.each_tensor([](Tensor& t) { t = t.unowned(); });
  return a;
}

#define PRIMITIVE(name, Args)                                                \
  namespace cpu {                                                            \
  void name(const Args&);                                                    \
  }                                                                          \
  inline void name(Device d, const Args& a) {                                \
    if (d.is_cuda()) return cuda::name(a);                                   \
    if (keeps_calls()) return keep([a = unowned_args(a)] { cpu::name(a); }); \
    return cpu::name(a);                                                     \
  }
#include "engine/seam.def"

// Describes what the CPU backend found and chose, for `--doctor`, summaries and benchmarks:
// "avx2, oneDNN 2.6.3, ...".
namespace cpu {
std::string describe();

// For conv2d_forward to fill; empty where it would have to read its result again.
ChannelSums sums_for(const ConvArgs&);
}  // namespace cpu

}  // namespace skein
