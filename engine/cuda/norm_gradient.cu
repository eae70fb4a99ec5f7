// The gradient of batch normalization, residual and ReLU: two passes over memory, or only the second if a
// library has taken the sums.
#include "engine/loops/launch.h"

#include "engine/cuda/batch_norm.h"
#include "engine/cuda/norm_affine.h"
#include "engine/ops/norm_check.h"

namespace skein::cuda {
namespace {

// How the ReLU's mask is computed: not at all; from y; from stored bits; or from x, which is cheaper to read,
// if nothing was added.
enum class Mask { kNone, kOutput, kBits, kInput };
template <class T>
struct Open {
  const T* y;
  const uint8_t* bits;
};

// What both passes load of V elements: x, dy, and what the mask is computed from.
template <class T, Mask kMask, int V>
struct Pixels {
  Pack<T, V> x, dy, y;
  unsigned bits;
};
template <class T, Mask kMask>
struct Images {
  const T *x, *dy;
  Open<T> open;
  template <int V>
  HD Pixels<T, kMask, V> take(int64_t at) const {
    Pixels<T, kMask, V> in;
    in.x = load<V>(x + at);
    in.dy = load<V>(dy + at);
    if constexpr (kMask == Mask::kOutput) in.y = load<V>(open.y + at);
    if constexpr (kMask == Mask::kBits) in.bits = unsigned(open.bits[at / 8]) >> (at % 8);
    return in;
  }
};

// dy where forward's ReLU passed its input, else 0.
template <class T, Mask kMask, int V>
HD Pack<T, V> masked(const Affine<V>& f, const Pixels<T, kMask, V>& in) {
  Pack<T, V> d = in.dy;
  for (int v = 0; v < V; ++v) {
    if constexpr (kMask == Mask::kOutput) d.v[v] = float(in.y.v[v]) > 0 ? d.v[v] : T(0.f);
    if constexpr (kMask == Mask::kBits) d.v[v] = in.bits >> v & 1 ? d.v[v] : T(0.f);
    if constexpr (kMask == Mask::kInput) d.v[v] = f(float(in.x.v[v]), v) > 0 ? d.v[v] : T(0.f);
  }
  return d;
}

// Sums of dy and of dy (x - mean), dy masked; the masked dy goes to `keep` too if there is one.
template <class T, Mask kMask>
struct GradientSums {
  static constexpr int kAhead = 2;
  Norm norm;
  Images<T, kMask> images;
  T* keep;
  template <int V>
  HD Affine<V> column(const Sweep& s, int64_t j) const {
    return Affine<V>(norm, s.channel(j));
  }
  template <int V>
  HD Pixels<T, kMask, V> take(int64_t at) const {
    return images.template take<V>(at);
  }
  template <int V>
  HD void add(const Affine<V>& f, int64_t at, const Pixels<T, kMask, V>& in, float* sum,
              float* products) const {
    const Pack<T, V> d = masked(f, in);
    if (keep) store(keep + at, d);
    for (int v = 0; v < V; ++v) {
      sum[v] += float(d.v[v]);
      products[v] = fmaf(float(d.v[v]), float(in.x.v[v]) - f.mean[v], products[v]);
    }
  }
};

// dgamma, dshift, and q and r of the channel's line dx = k d + q (x - mean) + r, where k is the norm's own.
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
    line[c] = float(-on * scale * rstd * dg / n);
    line[channels + c] = float(-on * scale * sum / n);
  }
};

// The same with both sums known.
struct KeepKnown {
  KeepGradients keep;
  const float *dgamma, *dshift;
  HD void operator()(int64_t c) const {
    keep.finish(c, double(dshift[c]), double(dgamma[c]) / double(keep.norm.rstd(c)));
  }
};

template <class T, Mask kMask>
struct ApplyGradient {
  static constexpr int kAhead = 2;
  Norm norm;
  const float* line;
  Images<T, kMask> images;
  T *dx, *dresidual;
  float dx_beta, dresidual_beta;
  template <int V>
  struct Column {
    Affine<V> f;
    float q[V], r[V];
  };
  template <int V>
  HD Column<V> column(const Sweep& s, int64_t j) const {
    const uint32_t c = s.channel(j);
    Column<V> l{Affine<V>(norm, c), {}, {}};
    take_floats(line + c, l.q), take_floats(line + s.channels + c, l.r);
    return l;
  }
  template <int V>
  HD Pixels<T, kMask, V> take(int64_t at) const {
    return images.template take<V>(at);
  }
  template <int V>
  HD void each(const Column<V>& l, int64_t at, const Pixels<T, kMask, V>& in) const {
    const Pack<T, V> d = masked(l.f, in);
    float out[V];
    if (dx) {
      for (int v = 0; v < V; ++v)
        out[v] = fmaf(l.f.k[v], float(d.v[v]), fmaf(l.q[v], float(in.x.v[v]) - l.f.mean[v], l.r[v]));
      give(dx + at, out, dx_beta);
    }
    if (!dresidual) return;
    for (int v = 0; v < V; ++v) out[v] = float(d.v[v]);
    give(dresidual + at, out, dresidual_beta);
  }
  template <int V>
  HD static void give(T* to, float (&out)[V], float beta) {
    if (beta != 0) {
      const auto old = load<V>(to);
      for (int v = 0; v < V; ++v) out[v] += beta * float(old.v[v]);
    }
    store(to, rounded<T>(out));
  }
};

KeepGradients keep_of(const BatchNormArgs& a, const Tensor& line) {
  const int64_t channels = a.x.dim(-1);
  return {norm_of(a),
          data_or_null<float>(a.dgamma),
          data_or_null<float>(a.dshift),
          line.data<float>(),
          a.dgamma_beta,
          a.dshift_beta,
          double(a.x.size() / channels),
          channels};
}

template <class T, Mask kMask, int V>
void backward(const BatchNormArgs& a) {
  const Device d = a.x.device();
  const Sweep s = sweep_of(a.x, V);
  const Norm norm = norm_of(a);
  const T *x = a.x.data<T>(), *dy = a.dy.data<T>();
  const Open<T> open{data_or_null<T>(a.y), data_or_null<uint8_t>(a.mask)};
  T *dx = data_or_null<T>(a.dx), *dr = data_or_null<T>(a.dresidual);
  // Masking while summing leaves one tensor less to read in the second pass.
  const bool early = dr && a.dresidual_beta == 0;
  const Tensor line({2, s.channels}, kF32, d);
  sum_and_finish<V>(d, summing_sweep_of(a.x, V),
                    GradientSums<T, kMask>{norm, {x, dy, open}, early ? dr : nullptr}, keep_of(a, line));
  const float* l = line.data<float>();
  if (early && dx)
    sweep<V>(d, s, ApplyGradient<T, Mask::kNone>{norm, l, {x, dr, open}, dx, nullptr, a.dx_beta, 0});
  if (!early && (dx || dr))
    sweep<V>(d, s, ApplyGradient<T, kMask>{norm, l, {x, dy, open}, dx, dr, a.dx_beta, a.dresidual_beta});
}

}  // namespace

void batch_norm_backward(const BatchNormArgs& a) {
  check_norm(a);
  const bool again = a.shift && !a.residual;  // y can be recomputed from x
  CHECK(a.dy && a.gamma && (a.y || a.mask || !a.relu || again),
        "backward needs dy, gamma and, with a ReLU, y or its mask, or shift where nothing was added");
  with_norm_packs(a, {&a.x, &a.y, &a.dy, &a.dx, &a.dresidual}, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int V = decltype(width)::value;
    if (!a.relu)
      backward<T, Mask::kNone, V>(a);
    else if (a.mask)
      backward<T, Mask::kBits, V>(a);
    else if (a.residual || !a.shift)
      backward<T, Mask::kOutput, V>(a);
    else
      backward<T, Mask::kInput, V>(a);
  });
}

void finish_gradient(const BatchNormArgs& a, const Tensor& dgamma, const Tensor& dshift) {
  check_norm(a);
  CHECK(a.dy && a.dx && a.gamma && !a.dresidual, "what is finished is the gradient of x");
  const Device d = a.x.device();
  const Tensor line({2, a.x.dim(-1)}, kF32, d);
  for_each(d, a.x.dim(-1), KeepKnown{keep_of(a, line), dgamma.in<float>(), dshift.in<float>()});
  with_norm_packs(a, {&a.x, &a.dy, &a.dx}, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int V = decltype(width)::value;
    sweep<V>(d, sweep_of(a.x, V),
             ApplyGradient<T, Mask::kNone>{norm_of(a),
                                           line.in<float>(),
                                           {a.x.in<T>(), a.dy.in<T>(), Open<T>{}},
                                           a.dx.out<T>(),
                                           nullptr,
                                           a.dx_beta,
                                           0});
  });
}

}  // namespace skein::cuda
