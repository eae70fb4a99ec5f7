// Batch normalization with residual add and ReLU: two passes over memory each way, one in evaluation.
#include <algorithm>
#include <cmath>

#include "engine/backend.h"
#include "engine/cpu/norm_rows.h"
#include "engine/cpu/profile.h"
#include "engine/ops/norm_check.h"
#include "engine/past_caches.h"

namespace skein::cpu {

namespace {

Period check(const BatchNormArgs& a) {
  check_norm(a);
  return {a.x.size() / a.x.dim(-1), a.x.dim(-1)};
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

void give_statistics(const BatchNormArgs& a, int64_t c, double mean, double var, double n) {
  a.mean.data<float>()[c] = float(mean);
  a.rstd.data<float>()[c] = float(1 / std::sqrt(var + double(a.epsilon)));
  if (!a.running_mean) return;
  float &rm = a.running_mean.data<float>()[c], &rv = a.running_var.data<float>()[c];
  rm += a.momentum * (float(mean) - rm);
  rv += a.momentum * (float(n > 1 ? var * n / (n - 1) : var) - rv);
}

// From the sums around zero. False if there are none, or if those of any channel cancel.
bool give_statistics_of_sums(const BatchNormArgs& a, double n) {
  if (!a.sums.sum) return false;
  const int64_t C = a.sums.sum.size();
  const auto mean = [&](int64_t c) { return double(a.sums.sum.data<float>()[c]) / n; };
  const auto square = [&](int64_t c) { return double(a.sums.squares.data<float>()[c]) / n; };
  for (int64_t c = 0; c < C; ++c)
    if (sums_cancel(mean(c), square(c))) return false;
  for (int64_t c = 0; c < C; ++c) give_statistics(a, c, mean(c), square(c) - mean(c) * mean(c), n);
  return true;
}

void statistics(const BatchNormArgs& a, const Period& s, const NormKernels& kernel) {
  const std::vector<float> near =
      visit_float(a.x.dtype(), [&](auto zero) { return near_mean(a.x.data<decltype(zero)>(), s); });
  const std::vector<float> repeated = s.repeated([&](int64_t c) { return near[size_t(c)]; });
  const NormPass pass{.x = a.x.raw(), .mean = repeated.data()};
  const auto sums =
      two_sums(s, [&](const NormRows& rows, float* into) { kernel.statistics(pass, rows, into); });
  const double n = double(s.rows);
  for (int64_t c = 0; c < s.channels; ++c) {
    const double d = sums[size_t(c)] / n, mean = double(near[size_t(c)]) + d;
    const double var = sums[size_t(s.channels + c)] / n - d * d;
    give_statistics(a, c, mean, var < 0 ? 0 : var, n);  // a NaN stays one
  }
}

// The mean and rstd that the pass uses: those given, which are the batch's, or the running ones.
struct Moments {
  std::vector<float> mean, rstd;
};
Moments moments(const BatchNormArgs& a, int64_t C) {
  Moments m{std::vector<float>(size_t(C)), std::vector<float>(size_t(C))};
  for (int64_t c = 0; c < C; ++c) {
    m.mean[size_t(c)] = a.mean ? a.mean.data<float>()[c] : a.running_mean.data<float>()[c];
    m.rstd[size_t(c)] =
        a.rstd ? a.rstd.data<float>()[c] : 1 / std::sqrt(a.running_var.data<float>()[c] + a.epsilon);
  }
  return m;
}

// y = (x - mean) k + b
struct Affine {
  std::vector<float> mean, k, b;
  Affine(const BatchNormArgs& a, const Period& s, const Moments& m)
      : mean(s.repeated([&](int64_t c) { return m.mean[size_t(c)]; })),
        k(s.repeated([&](int64_t c) { return m.rstd[size_t(c)] * a.gamma.data<float>()[c]; })),
        b(s.repeated([&](int64_t c) { return a.shift ? a.shift.data<float>()[c] : 0.f; })) {}
  NormPass pass(const Tensor& x) const {
    return {.x = x.raw(), .mean = mean.data(), .k = k.data(), .b = b.data()};
  }
};

void apply(const BatchNormArgs& a, const Period& s, const NormKernels& kernel) {
  const Affine f(a, s, moments(a, s.channels));
  NormPass pass = f.pass(a.x);
  pass.residual = a.residual ? a.residual.raw() : nullptr;
  pass.out = a.y.raw();
  pass.low = a.relu ? 0.f : -INFINITY;
  pass.past_caches = past_caches(a.y);
  divide(s, [&](int, const NormRows& rows) { kernel.apply(pass, rows); });
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

void gradient(const BatchNormArgs& a, const Period& s, const NormKernels& kernel, Mask mask, NormPass pass,
              const Line& l) {
  pass.out = a.dx ? a.dx.raw() : nullptr;
  pass.p = l.p.data(), pass.q = l.q.data(), pass.r = l.r.data();
  pass.out_beta = a.dx_beta, pass.dr_beta = a.dresidual_beta;
  pass.past_caches = a.dx && a.dx_beta == 0 && past_caches(a.dx);
  divide(s, [&](int, const NormRows& rows) { kernel.gradient[int(mask)](pass, rows); });
}

// Masking while summing leaves one tensor less to read in the second pass.
void backward(const BatchNormArgs& a, const Period& s, const NormKernels& kernel, Mask mask) {
  const Moments m = moments(a, s.channels);
  const Affine f(a, s, m);
  const bool early = a.dresidual && a.dresidual_beta == 0;
  NormPass pass = f.pass(a.x);
  pass.dy = a.dy.raw();
  pass.y = mask == Mask::kOutput ? a.y.raw() : nullptr;
  pass.dr = early ? a.dresidual.raw() : nullptr;
  auto sums = two_sums(
      s, [&](const NormRows& rows, float* into) { kernel.gradient_sums[int(mask)](pass, rows, into); });
  for (int64_t c = 0; c < s.channels; ++c) sums[size_t(s.channels + c)] *= double(m.rstd[size_t(c)]);
  give_parameters(a, sums);
  const Line l(a, s, m, sums);
  if (early) pass.dy = pass.dr, pass.dr = nullptr, mask = Mask::kNone;
  if (!early && a.dresidual) pass.dr = a.dresidual.raw();
  if (a.dx || pass.dr) gradient(a, s, kernel, mask, pass, l);
}

Mask mask_of(const BatchNormArgs& a) {
  if (!a.relu) return Mask::kNone;
  return a.residual || !a.shift ? Mask::kOutput : Mask::kInput;
}

}  // namespace

void batch_norm_forward(const BatchNormArgs& a) {
  const Period s = check(a);
  CHECK(a.y && a.gamma && a.shift, "forward needs y, gamma and shift");
  const bool reads_twice = a.training && !give_statistics_of_sums(a, double(s.rows));
  const Counted counted(kNormForward, 0, bytes_of(a.x, a.y, a.residual) + (reads_twice ? bytes_of(a.x) : 0));
  const NormKernels& kernel = kernels().norm[element(a.x.dtype())];
  if (reads_twice) statistics(a, s, kernel);
  apply(a, s, kernel);
}

void batch_norm_backward(const BatchNormArgs& a) {
  const Period s = check(a);
  const Mask mask = mask_of(a);
  const double both = bytes_of(a.x, a.dy) + (mask == Mask::kOutput ? bytes_of(a.y) : 0);
  const Counted counted(kNormBackward, 0, 2 * both + bytes_of(a.dx, a.dresidual));
  const bool again = a.shift && !a.residual;  // y can be recomputed from x
  CHECK(a.dy && a.gamma && (a.y || !a.relu || again),
        "backward needs dy, gamma and, with a ReLU, y, or shift where nothing was added");
  backward(a, s, kernels().norm[element(a.x.dtype())], mask);
}

}  // namespace skein::cpu
