// Batch normalization with residual add and ReLU, forward: two passes over memory, or one if the statistics
// are known, as in evaluation.
#include "engine/loops/launch.h"

#include "engine/cuda/batch_norm.h"
#include "engine/cuda/norm_affine.h"
#include "engine/ops/norm_check.h"

namespace skein::cuda {
namespace {

template <class T>
struct Apply {
  static constexpr int kAhead = 2;
  Norm norm;
  const T *x, *residual;
  T* y;
  uint8_t* mask;
  float low;
  template <int V>
  struct Pixels {
    Pack<T, V> x, residual;
  };
  template <int V>
  HD Affine<V> column(const Sweep& s, int64_t j) const {
    return Affine<V>(norm, s.channel(j));
  }
  template <int V>
  HD Pixels<V> take(int64_t at) const {
    return {load<V>(x + at), residual ? load<V>(residual + at) : Pack<T, V>{}};
  }
  template <int V>
  HD void each(const Affine<V>& f, int64_t at, const Pixels<V>& in) const {
    float z[V];
    for (int v = 0; v < V; ++v) {
      z[v] = f(float(in.x.v[v]), v);
      if (residual) z[v] += float(in.residual.v[v]);
      z[v] = z[v] < low ? low : z[v];  // a NaN stays
    }
    const Pack<T, V> out = rounded<T>(z);
    store(y + at, out);
    if constexpr (V == 8)
      if (mask) {
        unsigned bits = 0;
        for (int v = 0; v < V; ++v) bits |= unsigned(float(out.v[v]) > 0) << v;
        mask[at / 8] = uint8_t(bits);
      }
  }
};

}  // namespace

void normalize(const BatchNormArgs& a) {
  check_norm(a);
  CHECK(a.y && a.gamma && a.shift, "forward needs y, gamma and shift");
  with_norm_packs(a, {&a.x, &a.y, &a.residual}, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int V = decltype(width)::value;
    const Device d = a.x.device();
    const Sweep s = sweep_of(a.x, V);
    CHECK(!a.mask || (V == 8 && a.relu), "a mask is of 8 neighbors of 16 bits after a ReLU, not of",
          a.x.shape(), a.x.dtype());
    sweep<V>(d, s,
             Apply<T>{norm_of(a), a.x.data<T>(), data_or_null<T>(a.residual), a.y.data<T>(),
                      data_or_null<uint8_t>(a.mask), a.relu ? 0.f : -HUGE_VALF});
  });
}

void batch_norm_forward(const BatchNormArgs& a) {
  check_norm(a);
  if (a.training) statistics(a);
  normalize(a);
}

}  // namespace skein::cuda
