// The gradient of batch normalization, residual and ReLU: two passes over memory, or, where a library has taken
// the sums, the second alone.
#include "engine/launch.h"

#include "engine/cuda/batch_norm.h"
#include "engine/cuda/norm_affine.h"

namespace skein::cuda {
namespace {

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

// The same where the two sums are known.
struct KeepKnown {
  KeepGradients keep;
  const float *dgamma, *dshift;
  HD void operator()(int64_t c) const {
    keep.finish(c, double(dshift[c]), double(dgamma[c]) / double(keep.norm.rstd(c)));
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
void backward(const BatchNormArgs& a, const Sweep& s) {
  const Device d = a.x.device();
  const Norm norm = norm_of(a);
  const T *x = a.x.data<T>(), *dy = a.dy.data<T>();
  const Open<T> open{data_or_null<T>(a.y), data_or_null<uint8_t>(a.mask)};
  T *dx = data_or_null<T>(a.dx), *dr = data_or_null<T>(a.dresidual);
  // Masking while summing leaves one tensor less to read in the second pass.
  const bool early = dr && a.dresidual_beta == 0;
  const Tensor line({3, s.channels}, kF32, d);
  sum_and_finish<V>(d, s, GradientSums<T, kMask>{norm, x, dy, open, early ? dr : nullptr}, keep_of(a, line));
  const float* l = line.data<float>();
  if (early && dx)
    sweep<V>(d, s, ApplyGradient<T, Mask::kNone>{norm, l, x, dr, open, dx, nullptr, a.dx_beta, 0});
  if (!early && (dx || dr))
    sweep<V>(d, s, ApplyGradient<T, kMask>{norm, l, x, dy, open, dx, dr, a.dx_beta, a.dresidual_beta});
}

}  // namespace

void batch_norm_backward(const BatchNormArgs& a) {
  check_norm(a);
  const bool again = a.shift && !a.residual;  // x and the affine map tell y
  CHECK(a.dy && a.gamma && (a.y || a.mask || !a.relu || again),
        "backward needs dy, gamma and, with a ReLU, y or its mask, or shift where nothing was added");
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

void finish_gradient(const BatchNormArgs& a, const Tensor& dgamma, const Tensor& dshift) {
  check_norm(a);
  CHECK(a.dy && a.dx && a.gamma && !a.dresidual, "what is finished is the gradient of x");
  const Device d = a.x.device();
  const Tensor line({3, a.x.dim(-1)}, kF32, d);
  for_each(d, a.x.dim(-1), KeepKnown{keep_of(a, line), dgamma.in<float>(), dshift.in<float>()});
  with_packs(a.x.dim(-1), {&a.x, &a.dy, &a.dx}, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int V = decltype(width)::value;
    sweep<V>(d, sweep_of(a.x, V),
             ApplyGradient<T, Mask::kNone>{norm_of(a), line.in<float>(), a.x.in<T>(), a.dy.in<T>(), Open<T>{},
                                           a.dx.out<T>(), nullptr, a.dx_beta, 0});
  });
}

}  // namespace skein::cuda
