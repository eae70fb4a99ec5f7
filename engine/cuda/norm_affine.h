// The affine map that a batch norm is for each channel, as kernels hold it. Included by .cu files after
// engine/launch.h.
#pragma once
#include "engine/cuda/norm_sweep.h"

namespace skein::cuda {

// The affine map (x - mean) k + b of a channel.
struct Norm {
  const float *gamma, *shift, *mean, *spread;  // spread: rstd in training, the running variance in evaluation
  bool training;
  float epsilon;
  HD float rstd(int64_t c) const { return training ? spread[c] : 1 / sqrtf(spread[c] + epsilon); }
};
inline Norm norm_of(const BatchNormArgs& a) {
  return {a.gamma.data<float>(),
          a.shift ? a.shift.data<float>() : nullptr,
          (a.training ? a.mean : a.running_mean).data<float>(),
          (a.training ? a.rstd : a.running_var).data<float>(),
          a.training,
          a.epsilon};
}
template <int V>
struct Affine {
  float mean[V], k[V], b[V];
  HD Affine(const Norm& n, const Sweep& s, int64_t j) {
    for (int v = 0; v < V; ++v) {
      const int64_t c = (j + v) % s.channels;
      mean[v] = n.mean[c], k[v] = n.rstd(c) * n.gamma[c], b[v] = n.shift ? n.shift[c] : 0.f;
    }
  }
  // One rounding, spelled out: backward must find the very sign that forward's ReLU saw.
  HD float operator()(float x, int v) const { return fmaf(x - mean[v], k[v], b[v]); }
};

}  // namespace skein::cuda
