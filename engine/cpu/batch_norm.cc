// Batch normalization with residual add and ReLU: two passes over memory each way, one in evaluation.
#include <algorithm>
#include <cmath>

#include "engine/backend.h"
#include "engine/cpu/norm_rows.h"
#include "engine/cpu/profile.h"

namespace skein::cpu {

namespace {

Period check(const BatchNormArgs& a) {
  CHECK(a.x && a.x.rank() >= 2, a.x.shape());
  const Period s{a.x.size() / a.x.dim(-1), a.x.dim(-1)};
  for (const Tensor* t : {&a.y, &a.residual, &a.dy, &a.dx, &a.dresidual})
    CHECK(!*t || (t->shape() == a.x.shape() && t->dtype() == a.x.dtype()), t->shape(), a.x.shape());
  for (const Tensor* t :
       {&a.gamma, &a.shift, &a.running_mean, &a.running_var, &a.mean, &a.rstd, &a.dgamma, &a.dshift})
    CHECK(!*t || (t->size() == s.channels && t->dtype() == kF32), t->shape(), s.channels);
  CHECK(!a.training || (a.mean && a.rstd), "training keeps mean and rstd");
  CHECK(a.training || (a.running_mean && a.running_var), "evaluation needs the running statistics");
  CHECK(s.rows > 0, a.x.shape());
  return s;
}

// The mean of a few rows, which is near each channel's mean, so that squares of differences from
// it do not cancel.
template <class T>
std::vector<float> near_mean(const T* x, const Period& s) {
  const int64_t n = std::min<int64_t>(s.rows, 16);
  std::vector<float> k(size_t(s.channels));
  for (int64_t i = 0; i < n; ++i) {
    const T* row = x + s.rows * i / n * s.channels;
    for (int64_t c = 0; c < s.channels; ++c) k[size_t(c)] += float(row[c]) / float(n);
  }
  return k;
}

template <class T>
void statistics(const BatchNormArgs& a, const Period& s) {
  const T* x = a.x.data<T>();
  const int64_t C = s.channels;
  const std::vector<float> near = near_mean(x, s);
  const std::vector<float> repeated = s.repeated([&](int64_t c) { return near[size_t(c)]; });
  const float* k = repeated.data();
  const auto sums = two_sums(s, [=](int64_t at, int64_t j, int64_t n, V8& sum, V8& squares) {
    const V8 d = load_some(x + at, n, load8(k + j)) - load8(k + j);
    sum += d;
    squares += d * d;
  });
  const double n = double(s.rows);
  for (int64_t c = 0; c < C; ++c) {
    const double d = sums[size_t(c)] / n, mean = double(near[size_t(c)]) + d;
    const double var = std::max(0., sums[size_t(C + c)] / n - d * d);
    a.mean.data<float>()[c] = float(mean);
    a.rstd.data<float>()[c] = float(1 / std::sqrt(var + double(a.epsilon)));
    if (!a.running_mean) continue;
    float &rm = a.running_mean.data<float>()[c], &rv = a.running_var.data<float>()[c];
    rm += a.momentum * (float(mean) - rm);
    rv += a.momentum * (float(s.rows > 1 ? var * n / (n - 1) : var) - rv);
  }
}

// The mean and rstd that the pass uses: those of the batch, or the running ones.
struct Moments {
  std::vector<float> mean, rstd;
};
Moments moments(const BatchNormArgs& a, int64_t C) {
  Moments m{std::vector<float>(size_t(C)), std::vector<float>(size_t(C))};
  for (int64_t c = 0; c < C; ++c) {
    m.mean[size_t(c)] = a.training ? a.mean.data<float>()[c] : a.running_mean.data<float>()[c];
    m.rstd[size_t(c)] =
        a.training ? a.rstd.data<float>()[c] : 1 / std::sqrt(a.running_var.data<float>()[c] + a.epsilon);
  }
  return m;
}

// (x - mean) k + b: written once, so that backward computes exactly the sign that forward's ReLU saw.
struct Affine {
  std::vector<float> mean, k, b;
  Affine(const BatchNormArgs& a, const Period& s, const Moments& m)
      : mean(s.repeated([&](int64_t c) { return m.mean[size_t(c)]; })),
        k(s.repeated([&](int64_t c) { return m.rstd[size_t(c)] * a.gamma.data<float>()[c]; })),
        b(s.repeated([&](int64_t c) { return a.shift ? a.shift.data<float>()[c] : 0.f; })) {}
};
inline V8 affine(V8 x, const float* mean, const float* k, const float* b) {
  return (x - load8(mean)) * load8(k) + load8(b);
}

template <class T, bool kResidual>
void apply(const BatchNormArgs& a, const Period& s) {
  const Affine f(a, s, moments(a, s.channels));
  const T *x = a.x.data<T>(), *residual = kResidual ? a.residual.data<T>() : nullptr;
  T* y = a.y.data<T>();
  const float *mean = f.mean.data(), *k = f.k.data(), *b = f.b.data();
  const V8 low = splat(a.relu ? 0.f : -INFINITY);
  each_vector(s, [=](int64_t at, int64_t j, int64_t n) {
    V8 v = affine(load_some(x + at, n, V8{}), mean + j, k + j, b + j);
    if constexpr (kResidual) v += load_some(residual + at, n, V8{});
    store_some(y + at, n, v < low ? low : v);  // a NaN stays a NaN
  });
}

// How the ReLU's mask is computed: not at all; from y; or from x, which is cheaper to read,
// if nothing was added.
enum class Mask { kNone, kOutput, kInput };

// Sums of dy and dy x^ over the pixels, dy masked; the masked dy goes to `masked` too if there is one.
template <class T, Mask kMask>
std::vector<double> gradient_sums(const BatchNormArgs& a, const Period& s, const Moments& m, const Affine& f,
                                  T* masked) {
  const T *x = a.x.data<T>(), *dy = a.dy.data<T>(), *y = kMask == Mask::kOutput ? a.y.data<T>() : nullptr;
  const float *mean = f.mean.data(), *k = f.k.data(), *b = f.b.data();
  auto sums = two_sums(s, [=](int64_t at, int64_t j, int64_t n, V8& sum, V8& products) {
    const V8 v = load_some(x + at, n, V8{});
    V8 d = load_some(dy + at, n, V8{});
    if constexpr (kMask == Mask::kOutput) d = load_some(y + at, n, V8{}) > V8{} ? d : V8{};
    if constexpr (kMask == Mask::kInput) d = affine(v, mean + j, k + j, b + j) > V8{} ? d : V8{};
    if (masked) store_some(masked + at, n, d);
    sum += d;
    products += d * (v - load8(mean + j));
  });
  for (int64_t c = 0; c < s.channels; ++c) sums[size_t(s.channels + c)] *= double(m.rstd[size_t(c)]);
  return sums;
}

// dgamma, dshift <- the sums + beta themselves.
void give_parameters(const BatchNormArgs& a, const std::vector<double>& sums) {
  const auto give = [&](const Tensor& t, float beta, const double* from) {
    if (!t) return;
    float* to = t.data<float>();
    for (int64_t c = 0; c < t.size(); ++c) to[c] = float(from[c]) + (beta == 0 ? 0.f : beta * to[c]);
  };
  give(a.dshift, a.dshift_beta, sums.data());
  give(a.dgamma, a.dgamma_beta, sums.data() + sums.size() / 2);
}

// dx = p d + q (x - mean) + r for channel constants p, q, r: a norm's whole gradient, given the sums.
struct Line {
  std::vector<float> p, q, r;
  Line(const BatchNormArgs& a, const Period& s, const Moments& m, const std::vector<double>& sums) {
    const auto scale = [&](int64_t c) {
      return double(a.gamma.data<float>()[c]) * double(m.rstd[size_t(c)]);
    };
    const double n = double(s.rows), on = a.training ? 1 : 0;
    p = s.repeated(scale);
    q = s.repeated([&](int64_t c) {
      return -on * scale(c) * double(m.rstd[size_t(c)]) * sums[size_t(s.channels + c)] / n;
    });
    r = s.repeated([&](int64_t c) { return -on * scale(c) * sums[size_t(c)] / n; });
  }
};

template <class T, Mask kMask>
void apply_gradient(const BatchNormArgs& a, const Period& s, const Affine& f, const Line& l, const T* dy,
                    T* dr) {
  const T *x = a.x.data<T>(), *y = kMask == Mask::kOutput ? a.y.data<T>() : nullptr;
  T* dx = a.dx ? a.dx.data<T>() : nullptr;
  const float *mean = f.mean.data(), *k = f.k.data(), *b = f.b.data();
  const float *p = l.p.data(), *q = l.q.data(), *r = l.r.data(), bx = a.dx_beta, br = a.dresidual_beta;
  each_vector(s, [=](int64_t at, int64_t j, int64_t n) {
    const V8 v = load_some(x + at, n, V8{});
    V8 d = load_some(dy + at, n, V8{});
    if constexpr (kMask == Mask::kOutput) d = load_some(y + at, n, V8{}) > V8{} ? d : V8{};
    if constexpr (kMask == Mask::kInput) d = affine(v, mean + j, k + j, b + j) > V8{} ? d : V8{};
    if (dx) {
      V8 g = load8(p + j) * d + (load8(q + j) * (v - load8(mean + j)) + load8(r + j));
      if (bx != 0) g += bx * load_some(dx + at, n, V8{});
      store_some(dx + at, n, g);
    }
    if (dr) store_some(dr + at, n, br == 0 ? d : d + br * load_some(dr + at, n, V8{}));
  });
}

template <class T, Mask kMask>
void backward(const BatchNormArgs& a, const Period& s) {
  const Moments m = moments(a, s.channels);
  const Affine f(a, s, m);
  T* dr = a.dresidual ? a.dresidual.data<T>() : nullptr;
  // Masking while summing leaves one tensor less to read in the second pass.
  const bool early = dr && a.dresidual_beta == 0;
  const auto sums = gradient_sums<T, kMask>(a, s, m, f, early ? dr : nullptr);
  give_parameters(a, sums);
  const Line l(a, s, m, sums);
  if (early && a.dx) apply_gradient<T, Mask::kNone>(a, s, f, l, dr, nullptr);
  if (!early && (a.dx || dr)) apply_gradient<T, kMask>(a, s, f, l, a.dy.data<T>(), dr);
}

}  // namespace

void batch_norm_forward(const BatchNormArgs& a) {
  const Timed timed(profile()[kNormForward]);
  const Period s = check(a);
  CHECK(a.y && a.gamma && a.shift, "forward needs y, gamma and shift");
  visit_float(a.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (a.training) statistics<T>(a, s);
    a.residual ? apply<T, true>(a, s) : apply<T, false>(a, s);
  });
}

void batch_norm_backward(const BatchNormArgs& a) {
  const Timed timed(profile()[kNormBackward]);
  const Period s = check(a);
  const bool again = a.shift && !a.residual;  // y can be recomputed from x
  CHECK(a.dy && a.gamma && (a.y || !a.relu || again),
        "backward needs dy, gamma and, with a ReLU, y, or shift where nothing was added");
  visit_float(a.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (!a.relu)
      backward<T, Mask::kNone>(a, s);
    else if (a.residual || !a.shift)
      backward<T, Mask::kOutput>(a, s);
    else
      backward<T, Mask::kInput>(a, s);
  });
}

}  // namespace skein::cpu
