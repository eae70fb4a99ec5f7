// Folds a norm's running statistics into the weights and bias of a convolution.
#include "engine/ops/fold.h"

#include <cmath>

#include "engine/loops/launch.h"

namespace skein {
namespace {

template <class T>
struct ScaleRow {
  const float* from;
  T* to;
  float scale;
  HD void operator()(int64_t i) const { to[i] = T(scale * from[i]); }
};
template <class T>
struct Scale {
  const float *from, *gamma, *var;
  T* to;
  int64_t each;
  float epsilon;
  HD ScaleRow<T> row(int64_t o) const {
    return {from + o * each, to + o * each, gamma[o] / sqrtf(var[o] + epsilon)};
  }
};
struct Bias {
  const float *gamma, *shift, *mean, *var;
  float* bias;
  float epsilon;
  HD void operator()(int64_t o) const { bias[o] = shift[o] - mean[o] * (gamma[o] / sqrtf(var[o] + epsilon)); }
};

}  // namespace

Folded fold_norm(const Tensor& w, const NormState& s, DType t) {
  const Device d = w.device();
  const int64_t outputs = w.dim(0), each = outputs ? w.size() / outputs : 0;
  const Folded f{Tensor(w.shape(), t, d), Tensor({outputs}, kF32, d)};
  const float *gamma = s.gamma.data<float>(), *var = s.running_var.data<float>();
  for_each(
      d, outputs,
      Bias{gamma, s.shift.data<float>(), s.running_mean.data<float>(), var, f.bias.data<float>(), s.epsilon});
  visit_float(t, [&](auto zero) {
    using T = decltype(zero);
    for_each_row(d, outputs, each, Scale<T>{w.data<float>(), gamma, var, f.w.data<T>(), each, s.epsilon});
  });
  return f;
}

}  // namespace skein
