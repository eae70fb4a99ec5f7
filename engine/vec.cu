// The algebra of vec.h: one functor a line, run by for_each on either device.
#include "engine/vec.h"

#include <cmath>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "engine/launch.h"

namespace skein {
namespace {

struct Fill {
  float* y;
  Scalar a;
  HD void operator()(int64_t i) const { y[i] = a.get(); }
};
struct Scale {
  float* y;
  Scalar a;
  HD void operator()(int64_t i) const { y[i] *= a.get(); }
};
struct ScaledCopy {
  float* y;
  const float* x;
  Scalar a;
  HD void operator()(int64_t i) const { y[i] = a.get() * x[i]; }
};
struct Lerp {
  float* y;
  const float* x;
  Scalar t;
  HD void operator()(int64_t i) const { y[i] += t.get() * (x[i] - y[i]); }
};
template <class Y, class X>
struct Copy {
  Y* y;
  const X* x;
  HD void operator()(int64_t i) const { y[i] = Y(float(x[i])); }
};
template <class Y, class X>
struct Axpy {
  Y* y;
  const X* x;
  Scalar a;
  HD void operator()(int64_t i) const { y[i] = Y(float(y[i]) + a.get() * float(x[i])); }
};

// kMomentum and kNesterov are template flags so that plain SGD neither reads nor writes v.
template <bool kMomentum, bool kNesterov>
struct Sgd {
  float *x, *v;
  const float *g, *at;
  Scalar lr, mu, decay;
  int64_t decayed;
  HD void operator()(int64_t i) const {
    const float d = i < decayed ? g[i] + decay.get() * at[i] : g[i];
    float u = d;
    if constexpr (kMomentum) {
      v[i] = mu.get() * v[i] + d;
      u = kNesterov ? d + mu.get() * v[i] : v[i];
    }
    x[i] -= lr.get() * u;
  }
};

// Sums f(i) in double: one partial sum per block of fixed size, added in order, so the result depends neither
// on the number of threads nor on their timing.
template <class F>
double ordered_sum(int64_t n, const F& f) {
  constexpr int64_t kBlock = 1 << 14;
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  std::vector<double> partial(size_t(blocks), 0.0);
#pragma omp parallel for schedule(static) if (blocks > 1)
  for (int64_t b = 0; b < blocks; ++b) {
    double s = 0;
    const int64_t end = b * kBlock + kBlock < n ? b * kBlock + kBlock : n;
#pragma omp simd reduction(+ : s)
    for (int64_t i = b * kBlock; i < end; ++i) s += f(i);
    partial[size_t(b)] = s;
  }
  double total = 0;
  for (double s : partial) total += s;
  return total;
}

struct Product {
  const float *x, *y;
  double operator()(int64_t i) const { return double(x[i]) * y[i]; }
};
struct NonFinite {
  const float* x;
  double operator()(int64_t i) const { return std::isfinite(x[i]) ? 0 : 1; }
};

// Reductions run on the host: they are asked for at evaluations and checkpoints, not inside a step.
Tensor on_host(const Tensor& x) {
  Tensor host = x.to(kCpu);
  if (x.device().is_cuda()) current_stream(x.device()).sync();
  return host;
}

void check_pair(const Tensor& y, const Tensor& x) {
  CHECK(y.size() == x.size() && y.device() == x.device(), y.shape(), x.shape(), y.device(), x.device());
}

}  // namespace

void fill(const Tensor& y, Scalar a) {
  if (y.dtype() == kF32) return for_each(y.device(), y.size(), Fill{y.data<float>(), a});
  CHECK(is_float(y.dtype()) && !a.slot, y.dtype());
  Tensor one = Tensor(y.shape(), kF32, y.device());
  fill(one, a);
  copy(y, one);
}
void copy(const Tensor& y, const Tensor& x) {
  check_pair(y, x);
  if (y.dtype() == x.dtype()) return copy_bytes(y, x);
  visit_float(y.dtype(), [&](auto to) {
    visit_float(x.dtype(), [&](auto from) {
      using Y = decltype(to);
      using X = decltype(from);
      for_each(y.device(), y.size(), Copy<Y, X>{y.data<Y>(), x.data<X>()});
    });
  });
}
void scale(const Tensor& y, Scalar a) { for_each(y.device(), y.size(), Scale{y.data<float>(), a}); }
void scaled_copy(const Tensor& y, Scalar a, const Tensor& x) {
  check_pair(y, x);
  for_each(y.device(), y.size(), ScaledCopy{y.data<float>(), x.data<float>(), a});
}
void axpy(const Tensor& y, Scalar a, const Tensor& x) {
  check_pair(y, x);
  visit_float(y.dtype(), [&](auto to) {
    visit_float(x.dtype(), [&](auto from) {
      using Y = decltype(to);
      using X = decltype(from);
      for_each(y.device(), y.size(), Axpy<Y, X>{y.data<Y>(), x.data<X>(), a});
    });
  });
}
void lerp(const Tensor& y, const Tensor& x, Scalar t) {
  check_pair(y, x);
  for_each(y.device(), y.size(), Lerp{y.data<float>(), x.data<float>(), t});
}

double dot(const Tensor& x, const Tensor& y) {
  check_pair(x, y);
  const Tensor a = on_host(x), b = on_host(y);
  return ordered_sum(a.size(), Product{a.data<float>(), b.data<float>()});
}
double norm(const Tensor& x) { return std::sqrt(dot(x, x)); }
bool all_finite(const Tensor& x) {
  const Tensor a = on_host(x);
  return ordered_sum(a.size(), NonFinite{a.data<float>()}) == 0;
}

void sgd_update(const SgdArgs& u) {
  check_pair(u.x, u.g);
  check_pair(u.x, u.at);
  const bool momentum = bool(u.v);
  if (momentum) check_pair(u.x, u.v);
  CHECK(momentum || (u.mu.value == 0 && !u.mu.slot), "momentum needs a vector to live in");
  const auto run = [&](auto functor) {
    functor.x = u.x.data<float>();
    functor.v = momentum ? u.v.data<float>() : nullptr;
    functor.g = u.g.data<float>();
    functor.at = u.at.data<float>();
    functor.decayed = u.decayed;
    for_each_if(u.x.device(), u.on, u.x.size(), functor);
  };
  const Scalar lr = u.lr, mu = u.mu, decay = u.decay;
  if (!momentum)
    run(Sgd<false, false>{nullptr, nullptr, nullptr, nullptr, lr, mu, decay, 0});
  else if (u.nesterov)
    run(Sgd<true, true>{nullptr, nullptr, nullptr, nullptr, lr, mu, decay, 0});
  else
    run(Sgd<true, false>{nullptr, nullptr, nullptr, nullptr, lr, mu, decay, 0});
}

}  // namespace skein
