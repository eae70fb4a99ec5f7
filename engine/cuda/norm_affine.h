// The affine map of a batch norm for each channel, as kernels hold it. Included by
// .cu files after engine/loops/launch.h.
#pragma once
#include <vector>

#include "engine/cuda/norm_sweep.h"

namespace skein::cuda {

// The affine map (x - mean) k + b of a channel.
struct Norm {
  const float *gamma, *shift, *mean, *spread;  // spread: rstd in training, the running variance in evaluation
  bool training;
  float epsilon;
  HD float rstd_of(float s) const { return training ? s : 1 / sqrtf(s + epsilon); }
  HD float rstd(int64_t c) const { return rstd_of(spread[c]); }
};
inline Norm norm_of(const BatchNormArgs& a) {
  return {a.gamma.in<float>(),
          a.shift ? a.shift.in<float>() : nullptr,
          (a.training ? a.mean : a.running_mean).in<float>(),
          (a.training ? a.rstd : a.running_var).in<float>(),
          a.training,
          a.epsilon};
}
template <int V>
struct Affine {
  float mean[V], k[V], b[V];
  HD Affine(const Norm& n, uint32_t c) {
    float spread[V], gamma[V];
    take_floats(n.mean + c, mean), take_floats(n.spread + c, spread), take_floats(n.gamma + c, gamma);
    for (int v = 0; v < V; ++v) k[v] = n.rstd_of(spread[v]) * gamma[v], b[v] = 0;
    if (n.shift) take_floats(n.shift + c, b);
  }
  // An explicit fma: backward must compute exactly the sign that forward's ReLU saw.
  HD float operator()(float x, int v) const { return fmaf(x - mean[v], k[v], b[v]); }
};

// Like with_packs() for the image's tensors. Parameters and statistics are loaded in packs, too,
// so their alignment matters.
template <class F>
void with_norm_packs(const BatchNormArgs& a, std::initializer_list<const Tensor*> images, F f) {
  std::vector<const Tensor*> all(images);
  for (const Tensor* t : {&a.gamma, &a.shift, &a.mean, &a.rstd, &a.running_mean, &a.running_var})
    all.push_back(t);
  with_packs(a.x.dim(-1), all, f);
}

}  // namespace skein::cuda
