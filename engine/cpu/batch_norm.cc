// Batch normalisation with residual add and ReLU: two passes over memory each way, one in evaluation.
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "engine/backend.h"

namespace skein::cpu {

namespace {

constexpr int64_t kBlock = 64;  // rows summed in f32 before they join a sum in double
constexpr int64_t kParallel = 1 << 14;

struct Size {
  int64_t rows, channels;
};

Size check(const BatchNormArgs& a) {
  CHECK(a.x && a.x.rank() >= 2, a.x.shape());
  const Size s{a.x.size() / a.x.dim(-1), a.x.dim(-1)};
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

// Calls f(thread, first row, last row) on a team. The division depends on the number of threads alone.
template <class F>
void divide(const Size& s, F f) {
#pragma omp parallel if (s.rows * s.channels > kParallel)
  {
    const int64_t n = omp_get_num_threads(), t = omp_get_thread_num();
    f(int(t), s.rows * t / n, s.rows * (t + 1) / n);
  }
}

// Two sums a channel: f32 over kBlock rows at a time, double beyond, threads added in order.
// f(row, sum, other) adds one row to both.
template <class F>
std::vector<double> two_sums(const Size& s, F f) {
  const int64_t C = s.channels;
  std::vector<double> total(size_t(2 * C * omp_get_max_threads()));
  divide(s, [&](int thread, int64_t first, int64_t last) {
    double* mine = total.data() + 2 * C * thread;
    std::vector<float> sums(size_t(2 * C));
    for (int64_t from = first; from < last; from += kBlock) {
      std::fill(sums.begin(), sums.end(), 0.f);
      for (int64_t i = from; i < std::min(from + kBlock, last); ++i) f(i, sums.data(), sums.data() + C);
      for (int64_t c = 0; c < 2 * C; ++c) mine[c] += double(sums[size_t(c)]);
    }
  });
  for (size_t at = size_t(2 * C); at < total.size(); ++at) total[at % size_t(2 * C)] += total[at];
  total.resize(size_t(2 * C));
  return total;
}

// Something near each channel's mean, so that squares taken from it do not cancel: the mean of a few rows.
template <class T>
std::vector<float> near_mean(const T* x, const Size& s) {
  const int64_t n = std::min<int64_t>(s.rows, 16);
  std::vector<float> k(size_t(s.channels));
  for (int64_t i = 0; i < n; ++i) {
    const T* row = x + s.rows * i / n * s.channels;
    for (int64_t c = 0; c < s.channels; ++c) k[size_t(c)] += float(row[c]) / float(n);
  }
  return k;
}

template <class T>
void statistics(const BatchNormArgs& a, const Size& s) {
  const T* x = a.x.data<T>();
  const std::vector<float> near = near_mean(x, s);
  const float* k = near.data();
  const int64_t C = s.channels;
  const auto sums = two_sums(s, [=](int64_t i, float* sum, float* squares) {
    const T* row = x + i * C;
#pragma omp simd
    for (int64_t c = 0; c < C; ++c) {
      const float d = float(row[c]) - k[c];
      sum[c] += d;
      squares[c] += d * d;
    }
  });
  const double n = double(s.rows);
  for (int64_t c = 0; c < C; ++c) {
    const double d = sums[size_t(c)] / n, mean = k[c] + d;
    const double var = std::max(0., sums[size_t(C + c)] / n - d * d);
    a.mean.data<float>()[c] = float(mean);
    a.rstd.data<float>()[c] = float(1 / std::sqrt(var + double(a.epsilon)));
    if (!a.running_mean) continue;
    float &rm = a.running_mean.data<float>()[c], &rv = a.running_var.data<float>()[c];
    rm += a.momentum * (float(mean) - rm);
    rv += a.momentum * (float(s.rows > 1 ? var * n / (n - 1) : var) - rv);
  }
}

// What the pass uses: the batch's mean and rstd, or the running ones.
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

template <class T>
void apply(const BatchNormArgs& a, const Size& s) {
  const int64_t C = s.channels;
  const Moments m = moments(a, C);
  std::vector<float> scale(m.rstd);
  for (size_t c = 0; c < size_t(C); ++c) scale[c] *= a.gamma.data<float>()[c];
  const T *x = a.x.data<T>(), *residual = a.residual ? a.residual.data<T>() : nullptr;
  T* y = a.y.data<T>();
  const float *k = scale.data(), *b = a.shift.data<float>(), *mean = m.mean.data(),
              low = a.relu ? 0.f : -INFINITY;
  divide(s, [=](int, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const T* from = x + i * C;
      T* to = y + i * C;
      if (residual) {
        const T* r = residual + i * C;
#pragma omp simd
        for (int64_t c = 0; c < C; ++c) {
          const float v = (float(from[c]) - mean[c]) * k[c] + b[c] + float(r[c]);
          to[c] = T(v < low ? low : v);
        }
      } else {
#pragma omp simd
        for (int64_t c = 0; c < C; ++c) {
          const float v = (float(from[c]) - mean[c]) * k[c] + b[c];
          to[c] = T(v < low ? low : v);
        }
      }
    }
  });
}

// dgamma, dshift into the caller's tensors; the batch's own sums (of dy and dy x^) are returned.
template <class T>
std::vector<double> gradient_sums(const BatchNormArgs& a, const Size& s, const Moments& m) {
  const int64_t C = s.channels;
  const T *x = a.x.data<T>(), *dy = a.dy.data<T>(), *y = a.relu ? a.y.data<T>() : nullptr;
  const float *mean = m.mean.data(), *rstd = m.rstd.data();
  const auto sums = two_sums(s, [=](int64_t i, float* sum, float* products) {
    const T *xi = x + i * C, *di = dy + i * C, *yi = y ? y + i * C : nullptr;
#pragma omp simd
    for (int64_t c = 0; c < C; ++c) {
      const float d = yi && !(float(yi[c]) > 0) ? 0.f : float(di[c]);
      sum[c] += d;
      products[c] += d * ((float(xi[c]) - mean[c]) * rstd[c]);
    }
  });
  const auto give = [&](const Tensor& t, float beta, const double* from) {
    if (!t) return;
    float* to = t.data<float>();
    for (int64_t c = 0; c < C; ++c) to[c] = float(from[c]) + (beta == 0 ? 0.f : beta * to[c]);
  };
  give(a.dshift, a.dshift_beta, sums.data());
  give(a.dgamma, a.dgamma_beta, sums.data() + C);
  return sums;
}

// dx = p d + q x + r for channel constants p, q, r: the whole gradient of a norm, once its two sums are known.
struct Line {
  std::vector<float> p, q, r;
};
Line input_gradient(const BatchNormArgs& a, const Size& s, const Moments& m,
                    const std::vector<double>& sums) {
  const size_t C = size_t(s.channels);
  Line l{std::vector<float>(C), std::vector<float>(C), std::vector<float>(C)};
  for (size_t c = 0; c < C; ++c) {
    const double p = double(a.gamma.data<float>()[c]) * m.rstd[c];
    const double q = a.training ? -p * m.rstd[c] * sums[C + c] / double(s.rows) : 0;
    const double r = a.training ? -p * sums[c] / double(s.rows) - q * m.mean[c] : 0;
    l.p[c] = float(p), l.q[c] = float(q), l.r[c] = float(r);
  }
  return l;
}

template <class T>
void apply_gradient(const BatchNormArgs& a, const Size& s, const Line& l) {
  const int64_t C = s.channels;
  const T *x = a.x.data<T>(), *dy = a.dy.data<T>(), *y = a.relu ? a.y.data<T>() : nullptr;
  T *dx = a.dx ? a.dx.data<T>() : nullptr, *dr = a.dresidual ? a.dresidual.data<T>() : nullptr;
  const float *p = l.p.data(), *q = l.q.data(), *r = l.r.data(), bx = a.dx_beta, br = a.dresidual_beta;
  divide(s, [=](int, int64_t first, int64_t last) {
    for (int64_t i = first * C; i < last * C; i += C) {
      std::vector<float>& masked = [&]() -> std::vector<float>& {
        thread_local std::vector<float> row;
        return row;
      }();
      masked.resize(size_t(C));
      float* d = masked.data();
#pragma omp simd
      for (int64_t c = 0; c < C; ++c) d[c] = y && !(float(y[i + c]) > 0) ? 0.f : float(dy[i + c]);
      if (dx)
        for (int64_t c = 0; c < C; ++c)
          dx[i + c] =
              T(p[c] * d[c] + q[c] * float(x[i + c]) + r[c] + (bx == 0 ? 0.f : bx * float(dx[i + c])));
      if (dr)
        for (int64_t c = 0; c < C; ++c) dr[i + c] = T(d[c] + (br == 0 ? 0.f : br * float(dr[i + c])));
    }
  });
}

}  // namespace

void batch_norm_forward(const BatchNormArgs& a) {
  const Size s = check(a);
  CHECK(a.y && a.gamma && a.shift, "forward needs y, gamma and shift");
  visit_float(a.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (a.training) statistics<T>(a, s);
    apply<T>(a, s);
  });
}

void batch_norm_backward(const BatchNormArgs& a) {
  const Size s = check(a);
  CHECK(a.dy && a.gamma && (a.y || !a.relu), "backward needs dy, gamma and, with a ReLU, y");
  const Moments m = moments(a, s.channels);
  visit_float(a.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto sums = gradient_sums<T>(a, s, m);
    if (a.dx || a.dresidual) apply_gradient<T>(a, s, input_gradient(a, s, m, sums));
  });
}

}  // namespace skein::cpu
