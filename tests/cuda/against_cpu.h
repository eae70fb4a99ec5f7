// Shared by comparisons of CUDA primitives with the CPU's: arguments on both devices, and their difference.
#pragma once
#include <random>

#include "engine/backend.h"
#include "engine/device/device_use.h"
#include "tests/support/numbers/difference.h"
#include "tests/support/testing.h"

namespace skein::testing {

// Gaussian values rounded to the type.
inline Tensor gaussian(const Shape& s, DType t, uint64_t seed, float offset = 0) {
  Tensor x(s, t);
  fill_normal(x, draw(seed), offset, 1);
  return x;
}

// A copy on the device whose numbers do not begin where packets of 16 bytes do.
inline Tensor unaligned(const Tensor& t, Device d) {
  const Tensor wide({t.size() + 1}, t.dtype(), d), view = wide.view(t.shape(), 1);
  copy_bytes(view, t);
  return view;
}

// Replaces t by a copy on the device, even if that is the host.
inline void move(Tensor& t, Device d) {
  if (!t) return;
  const Tensor there(t.shape(), t.dtype(), d);
  copy_bytes(there, t);
  t = there;
}
inline GemmArgs there(GemmArgs g, Device d) {
  for (Tensor* t : {&g.y, &g.a, &g.b, &g.bias}) move(*t, d);
  return g;
}
inline ConvArgs there(ConvArgs c, Device d) {
  for (Tensor* t : {&c.x, &c.w, &c.bias, &c.y, &c.residual}) move(*t, d);
  return c;
}
inline PoolArgs there(PoolArgs p, Device d) {
  for (Tensor* t : {&p.x, &p.y, &p.argmax, &p.dx, &p.dy}) move(*t, d);
  return p;
}
inline BatchNormArgs there(BatchNormArgs a, Device d) {
  const bool in_place = a.dresidual && a.dresidual.raw() == a.dy.raw();
  for (Tensor* t : {&a.x, &a.y, &a.residual, &a.gamma, &a.shift, &a.running_mean, &a.running_var, &a.mean,
                    &a.rstd, &a.dy, &a.dx, &a.dresidual, &a.dgamma, &a.dshift, &a.mask})
    move(*t, d);
  if (in_place) a.dresidual = a.dy;
  return a;
}

inline double difference(const Tensor& got, const Tensor& wanted) {
  return differences::relative_difference(values(got), values(wanted));
}

// Root mean square of the difference, relative to that of the wanted values: for cases in which masks of
// values near zero may differ in the last bit of a 16-bit image.
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double square = 1e-12, apart = 0;
  for (size_t i = 0; i < b.size(); ++i) square += b[i] * b[i], apart += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(apart / square);
}

// For compute capability 8.x and 9.0 cuDNN ships kernels that fuse a norm between two f16 convolutions into
// the second one, forward and backward. On other GPUs it may have none, and the passes run separately.
inline bool norms_can_be_fused() {
  const std::string gpu = describe(kFirstGpu);
  return gpu.find("compute capability 8.") != std::string::npos ||
         gpu.find("compute capability 9.0") != std::string::npos;
}

// f32 results lose a few rounding steps; 16-bit ones are stored with 8 or 11 bits, so neighbors differ by up
// to 1/128 or 1/1024, and their largest is some 6 rms.
inline double bound(DType t) { return t == kF32 ? 1e-5 : t == kF16 ? 6.5e-3 : 5e-2; }

}  // namespace skein::testing
