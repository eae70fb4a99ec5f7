// Batch normalization with residual add and ReLU: two passes over memory each way, one in evaluation and
// where the statistics are known.
#include "engine/launch.h"

#include "engine/cuda/batch_norm.h"
#include "engine/cuda/norm_sweep.h"

namespace skein::cuda {
namespace {

// The affine map (x - mean) k + b of a channel.
struct Norm {
  const float *gamma, *shift, *mean, *spread;  // spread: rstd in training, the running variance in evaluation
  bool training;
  float epsilon;
  HD float rstd(int64_t c) const { return training ? spread[c] : 1 / sqrtf(spread[c] + epsilon); }
};
Norm norm_of(const BatchNormArgs& a) {
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

template <class T>
struct Apply {
  Norm norm;
  const T *x, *residual;
  T* y;
  uint8_t* mask;
  float low;
  template <int V>
  HD Affine<V> column(const Sweep& s, int64_t j) const {
    return Affine<V>(norm, s, j);
  }
  template <int V>
  HD void each(const Affine<V>& f, int64_t at) const {
    const auto in = load<V>(x + at);
    const auto add = residual ? load<V>(residual + at) : Pack<T, V>{};
    Pack<T, V> out;
    for (int v = 0; v < V; ++v) {
      float z = f(float(in.v[v]), v);
      if (residual) z += float(add.v[v]);
      out.v[v] = T(z < low ? low : z);  // a NaN stays
    }
    store(y + at, out);
    if constexpr (V == 8)
      if (mask) {
        unsigned bits = 0;
        for (int v = 0; v < V; ++v) bits |= unsigned(float(out.v[v]) > 0) << v;
        mask[at / 8] = uint8_t(bits);
      }
  }
};

// How the ReLU's mask is found: there is none; from y; from bits in its place; or, cheaper to read, from x,
// when nothing was added.
enum class Mask { kNone, kOutput, kBits, kInput };
template <class T>
struct Open {
  const T* y;
  const uint8_t* bits;
};

// dy where forward's ReLU was open.
template <class T, Mask kMask, int V>
HD void masked(const Affine<V>& f, const Open<T>& open, const Pack<T, V>& x, int64_t at, Pack<T, V>& d) {
  if constexpr (kMask == Mask::kOutput) {
    const auto out = load<V>(open.y + at);
    for (int v = 0; v < V; ++v) d.v[v] = float(out.v[v]) > 0 ? d.v[v] : T(0.f);
  }
  if constexpr (kMask == Mask::kBits) {
    const unsigned bits = unsigned(open.bits[at / 8]) >> (at % 8);
    for (int v = 0; v < V; ++v) d.v[v] = bits >> v & 1 ? d.v[v] : T(0.f);
  }
  if constexpr (kMask == Mask::kInput)
    for (int v = 0; v < V; ++v) d.v[v] = f(float(x.v[v]), v) > 0 ? d.v[v] : T(0.f);
}

// Sums of dy and of dy (x - mean), dy masked; the masked dy goes to `keep` too if there is one.
template <class T, Mask kMask>
struct GradientSums {
  Norm norm;
  const T *x, *dy;
  Open<T> open;
  T* keep;
  template <int V>
  HD Affine<V> column(const Sweep& s, int64_t j) const {
    return Affine<V>(norm, s, j);
  }
  template <int V>
  HD void add(const Affine<V>& f, int64_t at, float* sum, float* products) const {
    const auto in = load<V>(x + at);
    auto d = load<V>(dy + at);
    masked<T, kMask>(f, open, in, at, d);
    if (keep) store(keep + at, d);
    for (int v = 0; v < V; ++v) {
      sum[v] += float(d.v[v]);
      products[v] = fmaf(float(d.v[v]), float(in.v[v]) - f.mean[v], products[v]);
    }
  }
};

// dgamma, dshift, and the line dx = p d + q (x - mean) + r of the channel.
struct KeepGradients {
  Norm norm;
  float *dgamma, *dshift, *line;
  float dgamma_beta, dshift_beta;
  double n;
  int64_t channels;
  HD void finish(int64_t c, double sum, double products) const {
    const double rstd = double(norm.rstd(c)), scale = double(norm.gamma[c]) * rstd,
                 on = norm.training ? 1 : 0;
    const double dg = products * rstd;
    if (dshift) dshift[c] = float(sum) + (dshift_beta == 0 ? 0.f : dshift_beta * dshift[c]);
    if (dgamma) dgamma[c] = float(dg) + (dgamma_beta == 0 ? 0.f : dgamma_beta * dgamma[c]);
    line[c] = float(scale);
    line[channels + c] = float(-on * scale * rstd * dg / n);
    line[2 * channels + c] = float(-on * scale * sum / n);
  }
};

template <class T, Mask kMask>
struct ApplyGradient {
  Norm norm;
  const float* line;
  const T *x, *dy;
  Open<T> open;
  T *dx, *dresidual;
  float dx_beta, dresidual_beta;
  template <int V>
  struct Column {
    Affine<V> f;
    float p[V], q[V], r[V];
  };
  template <int V>
  HD Column<V> column(const Sweep& s, int64_t j) const {
    Column<V> l{Affine<V>(norm, s, j), {}, {}, {}};
    for (int v = 0; v < V; ++v) {
      const int64_t c = (j + v) % s.channels;
      l.p[v] = line[c], l.q[v] = line[s.channels + c], l.r[v] = line[2 * s.channels + c];
    }
    return l;
  }
  template <int V>
  HD void each(const Column<V>& l, int64_t at) const {
    const auto in = load<V>(x + at);
    auto d = load<V>(dy + at);
    masked<T, kMask>(l.f, open, in, at, d);
    if (dx) {
      const auto old = dx_beta != 0 ? load<V>(dx + at) : Pack<T, V>{};
      Pack<T, V> out;
      for (int v = 0; v < V; ++v) {
        float g = fmaf(l.p[v], float(d.v[v]), fmaf(l.q[v], float(in.v[v]) - l.f.mean[v], l.r[v]));
        if (dx_beta != 0) g += dx_beta * float(old.v[v]);
        out.v[v] = T(g);
      }
      store(dx + at, out);
    }
    if (!dresidual) return;
    if (dresidual_beta != 0) {
      const auto old = load<V>(dresidual + at);
      for (int v = 0; v < V; ++v) d.v[v] = T(float(d.v[v]) + dresidual_beta * float(old.v[v]));
    }
    store(dresidual + at, d);
  }
};

void check(const BatchNormArgs& a) {
  CHECK(a.x && a.x.rank() >= 2 && a.x.size() > 0, a.x.shape());
  const int64_t channels = a.x.dim(-1);
  for (const Tensor* t : {&a.y, &a.residual, &a.dy, &a.dx, &a.dresidual})
    CHECK(!*t || (t->shape() == a.x.shape() && t->dtype() == a.x.dtype()), t->shape(), a.x.shape());
  for (const Tensor* t : {&a.gamma, &a.shift, &a.running_mean, &a.running_var, &a.mean, &a.rstd, &a.dgamma,
                          &a.dshift, &a.sums.sum, &a.sums.squares})
    CHECK(!*t || (t->size() == channels && t->dtype() == kF32), t->shape(), channels);
  CHECK(!a.mask || (a.mask.size() * 8 == a.x.size() && a.mask.dtype() == kU8), a.mask.shape(), a.x.shape());
  CHECK(!a.training || (a.mean && a.rstd), "training keeps mean and rstd");
  CHECK(a.training || (a.running_mean && a.running_var), "evaluation needs the running statistics");
}

template <class T, Mask kMask, int V>
void backward(const BatchNormArgs& a, const Sweep& s) {
  const Device d = a.x.device();
  const Norm norm = norm_of(a);
  const T *x = a.x.data<T>(), *dy = a.dy.data<T>();
  const Open<T> open{data_or_null<T>(a.y), data_or_null<uint8_t>(a.mask)};
  T *dx = data_or_null<T>(a.dx), *dr = data_or_null<T>(a.dresidual);
  // Masking while summing leaves one tensor less to read in the second pass.
  const bool early = dr && a.dresidual_beta == 0;
  const Tensor line({3, s.channels}, kF32, d);
  sum_and_finish<V>(
      d, s, GradientSums<T, kMask>{norm, x, dy, open, early ? dr : nullptr},
      KeepGradients{norm, data_or_null<float>(a.dgamma), data_or_null<float>(a.dshift), line.data<float>(),
                    a.dgamma_beta, a.dshift_beta, double(s.rows * s.fold), s.channels});
  const float* l = line.data<float>();
  if (early && dx)
    sweep<V>(d, s, ApplyGradient<T, Mask::kNone>{norm, l, x, dr, open, dx, nullptr, a.dx_beta, 0});
  if (!early && (dx || dr))
    sweep<V>(d, s, ApplyGradient<T, kMask>{norm, l, x, dy, open, dx, dr, a.dx_beta, a.dresidual_beta});
}

}  // namespace

void batch_norm_forward(const BatchNormArgs& a) {
  check(a);
  CHECK(a.y && a.gamma && a.shift, "forward needs y, gamma and shift");
  if (a.training) statistics(a);
  with_packs(a.x.dim(-1), {&a.x, &a.y, &a.residual}, [&](auto zero, auto width) {
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

void batch_norm_backward(const BatchNormArgs& a) {
  check(a);
  CHECK(a.dy && a.gamma && (a.y || a.mask || !a.relu),
        "backward needs dy, gamma and, with a ReLU, y or its mask");
  with_packs(a.x.dim(-1), {&a.x, &a.y, &a.dy, &a.dx, &a.dresidual}, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int V = decltype(width)::value;
    const Sweep s = sweep_of(a.x, V);
    if (!a.relu)
      backward<T, Mask::kNone, V>(a, s);
    else if (a.mask)
      backward<T, Mask::kBits, V>(a, s);
    else if (a.residual || !a.shift)
      backward<T, Mask::kOutput, V>(a, s);
    else
      backward<T, Mask::kInput, V>(a, s);
  });
}

}  // namespace skein::cuda
