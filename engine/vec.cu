// The algebra of vec.h: one functor a line, run by for_each on either device.
#include "engine/vec.h"

#include <cmath>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "engine/narrow.h"
#include "engine/packets.h"

namespace skein {
namespace {

struct Fill {
  float* y;
  Scalar a;
  void settle() { settle_all(a); }
  template <int N>
  HD void operator()(int64_t i, Lanes<N>) const {
    float v[N];
    for (int j = 0; j < N; ++j) v[j] = a.get();
    store(y, i, v);
  }
};
template <class Y, class X>
struct ScaledCopy {
  Y* y;
  const X* x;
  Scalar a;
  void settle() { settle_all(a); }
  template <int N>
  HD void operator()(int64_t i, Lanes<N>) const {
    float v[N];
    load(v, x, i);
    for (int j = 0; j < N; ++j) v[j] = a.get() * v[j];
    store(y, i, v);
  }
};
struct Lerp {
  float* y;
  const float* x;
  Scalar t;
  void settle() { settle_all(t); }
  template <int N>
  HD void operator()(int64_t i, Lanes<N>) const {
    float u[N], v[N];
    load(u, y, i), load(v, x, i);
    for (int j = 0; j < N; ++j) u[j] += t.get() * (v[j] - u[j]);
    store(y, i, u);
  }
};
template <class Y, class X>
struct Copy {
  Y* y;
  const X* x;
  template <int N>
  HD void operator()(int64_t i, Lanes<N>) const {
    float v[N];
    load(v, x, i);
    store(y, i, v);
  }
};
template <class Y, class X>
struct Axpy {
  Y* y;
  const X* x;
  Scalar a;
  void settle() { settle_all(a); }
  template <int N>
  HD void operator()(int64_t i, Lanes<N>) const {
    float u[N], v[N];
    load(u, y, i), load(v, x, i);
    for (int j = 0; j < N; ++j) u[j] += a.get() * v[j];
    store(y, i, u);
  }
};

// kMomentum and kNesterov are template flags so that plain SGD neither reads nor writes v; Low is the type
// of the 16-bit copy, void where x has none.
template <bool kMomentum, bool kNesterov, class Low>
struct Sgd {
  float *x, *v;
  const float *g, *at;
  Low* low;
  Scalar lr, mu, decay;
  int64_t decayed;
  const float* on;
  bool off = false;
  void settle() { settle_all(lr, mu, decay), settle_flag(on, off); }
  template <int N>
  HD void operator()(int64_t i, Lanes<N>) const {
    float p[N], d[N], q[N], u[N];
    if (off || (on && *on == 0)) {
      if constexpr (!std::is_void_v<Low>) load(p, x, i), store(low, i, p);
      return;
    }
    load(p, x, i), load(d, g, i), load(q, at, i);
    if constexpr (kMomentum) load(u, v, i);
    for (int j = 0; j < N; ++j) {
      d[j] = i + j < decayed ? d[j] + decay.get() * q[j] : d[j];
      if constexpr (kMomentum) {
        u[j] = mu.get() * u[j] + d[j];
        p[j] -= lr.get() * (kNesterov ? d[j] + mu.get() * u[j] : u[j]);
      } else {
        p[j] -= lr.get() * d[j];
      }
    }
    store(x, i, p);
    if constexpr (kMomentum) store(v, i, u);
    if constexpr (!std::is_void_v<Low>) store(low, i, p);
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
  refuse_recording("a sum over a vector is read back to the host");
  Tensor host = x.to(kCpu);
  if (!x.device().is_host()) current_stream(x.device()).sync();
  return host;
}

void check_pair(const Tensor& y, const Tensor& x) {
  CHECK(y.size() == x.size() && y.device() == x.device(), y.shape(), x.shape(), y.device(), x.device());
}

template <class P>
using of = std::remove_const_t<std::remove_pointer_t<P>>;

// Runs the functor that `make` makes of y's and x's elements.
template <class Make>
void each_type(const Tensor& y, const Tensor& x, Make make) {
  visit_float(y.dtype(), [&](auto to) {
    visit_float(x.dtype(), [&](auto from) {
      for_each_packet(y.device(), y.size(), aligned({&y, &x}),
                      make(y.out<decltype(to)>(), x.in<decltype(from)>()));
    });
  });
}

}  // namespace

void fill(const Tensor& y, Scalar a) {
  if (y.dtype() == kF32) return for_each_packet(y.device(), y.size(), aligned({&y}), Fill{y.out<float>(), a});
  CHECK(is_float(y.dtype()) && !a.slot, y.dtype());
  Tensor one = Tensor(y.shape(), kF32, y.device());
  fill(one, a);
  copy(y, one);
}
void copy(const Tensor& y, const Tensor& x) {
  check_pair(y, x);
  if (y.dtype() == x.dtype()) return copy_bytes(y, x);
  each_type(y, x, [](auto* to, auto* from) { return Copy<of<decltype(to)>, of<decltype(from)>>{to, from}; });
}
void scale(const Tensor& y, Scalar a) { scaled_copy(y, a, y); }
void scaled_copy(const Tensor& y, Scalar a, const Tensor& x) {
  check_pair(y, x);
  each_type(y, x, [a](auto* to, auto* from) {
    return ScaledCopy<of<decltype(to)>, of<decltype(from)>>{to, from, a};
  });
}
void axpy(const Tensor& y, Scalar a, const Tensor& x) {
  check_pair(y, x);
  each_type(y, x, [a](auto* to, auto* from) {
    return Axpy<of<decltype(to)>, of<decltype(from)>>{to, from, a};
  });
}
void lerp(const Tensor& y, const Tensor& x, Scalar t) {
  check_pair(y, x);
  for_each_packet(y.device(), y.size(), aligned({&y, &x}), Lerp{y.out<float>(), x.in<float>(), t});
}

double dot(const Tensor& x, const Tensor& y) {
  check_pair(x, y);
  const Tensor a = on_host(x), b = on_host(y);
  return ordered_sum(a.size(), Product{a.in<float>(), b.in<float>()});
}
double norm(const Tensor& x) { return std::sqrt(dot(x, x)); }
bool all_finite(const Tensor& x) {
  const Tensor a = on_host(x);
  return ordered_sum(a.size(), NonFinite{a.in<float>()}) == 0;
}

void sgd_update(const SgdArgs& u) {
  check_pair(u.x, u.g);
  check_pair(u.x, u.at);
  const bool momentum = !(u.mu.slot == nullptr && u.mu.value == 0);
  if (momentum) check_pair(u.x, u.v);
  NarrowPass low(u.x);
  const bool packets = aligned({&u.x, &u.g, &u.at, &low.values}) && (!momentum || aligned({&u.v}));
  const auto run = [&](auto functor) { for_each_packet(u.x.device(), u.x.size(), packets, functor); };
  float *const x = u.x.out<float>(), *const v = momentum ? u.v.out<float>() : nullptr;
  const float *const g = u.g.in<float>(), *const at = u.at.in<float>();
  low.with([&](auto* to) {
    using Low = std::remove_pointer_t<decltype(to)>;
    if (!momentum)
      run(Sgd<false, false, Low>{x, v, g, at, to, u.lr, u.mu, u.decay, u.decayed, u.on});
    else if (u.nesterov)
      run(Sgd<true, true, Low>{x, v, g, at, to, u.lr, u.mu, u.decay, u.decayed, u.on});
    else
      run(Sgd<true, false, Low>{x, v, g, at, to, u.lr, u.mu, u.decay, u.decayed, u.on});
  });
  low.done();
}

}  // namespace skein
