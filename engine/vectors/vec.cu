// The algebra of vec.h: a functor of one line for each pass, run by each_element() on either device.
#include "engine/vectors/vec.h"

#include <cmath>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "engine/vectors/elementwise.h"
#include "engine/vectors/narrow.h"

namespace skein {
namespace {

struct Fill {
  HD void operator()(float& y, float a) const { y = a; }
};
struct Copy {
  HD void operator()(float& y, float x) const { y = x; }
};
struct ScaledCopy {
  HD void operator()(float& y, float x, float a) const { y = a * x; }
};
struct Axpy {
  HD void operator()(float& y, float x, float a) const { y += a * x; }
};
struct Lerp {
  HD void operator()(float& y, float x, float t) const { y += t * (x - y); }
};

// The flags are template parameters so that plain SGD neither reads nor writes v. `low` is x's 16-bit copy.
template <bool kMomentum, bool kNesterov>
struct Sgd {
  HD void operator()(float& x, float& low, float& v, float g, float at, bool decays, float off, float lr,
                     float mu, float decay) const {
    step(x, low, v, decays ? g + decay * at : g, off, lr, mu);
  }
  HD static void step(float& x, float& low, float& v, float d, float off, float lr, float mu) {
    const float u = kMomentum ? mu * v + d : d;
    x = off > 0 ? x : x - lr * (kNesterov ? d + mu * u : u);
    v = off > 0 ? v : u;
    low = x;
  }
};
template <bool kMomentum, bool kNesterov>
struct SegmentedSgd {
  HD void operator()(float& x, float& low, float& v, float g, float at, float rate, float decays, float off,
                     float lr, float mu, float decay) const {
    Sgd<kMomentum, kNesterov>::step(x, low, v, g + decay * decays * at, off, lr * rate, mu);
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

// Reductions run on the host, because only evaluations and checkpoints need them, not steps.
Tensor on_host(const Tensor& x) {
  refuse_recording("a sum over a vector is read back to the host");
  Tensor host = x.to(kCpu);
  if (!x.device().is_host()) current_stream(x.device()).sync();
  return host;
}

void check_pair(const Tensor& y, const Tensor& x) {
  CHECK(y.size() == x.size() && y.device() == x.device(), y.shape(), x.shape(), y.device(), x.device());
}

// Calls f with values of y's and of x's type.
template <class F>
void each_type(const Tensor& y, const Tensor& x, F f) {
  check_pair(y, x);
  visit_float(y.dtype(), [&](auto to) { visit_float(x.dtype(), [&](auto from) { f(to, from); }); });
}

}  // namespace

void fill(const Tensor& y, Scalar a) {
  if (y.dtype() == kF32) return each_element(y, Fill(), Write(y), Factor(a));
  CHECK(is_float(y.dtype()) && !a.slot, y.dtype());
  Tensor one = Tensor(y.shape(), kF32, y.device());
  fill(one, a);
  copy(y, one);
}
void copy(const Tensor& y, const Tensor& x) {
  check_pair(y, x);
  if (y.dtype() == x.dtype()) return copy_bytes(y, x);
  each_type(y, x, [&](auto to, auto from) {
    each_element(y, Copy(), Write<decltype(to)>(y), Read<decltype(from)>(x));
  });
}
void scale(const Tensor& y, Scalar a) { scaled_copy(y, a, y); }
void scaled_copy(const Tensor& y, Scalar a, const Tensor& x) {
  each_type(y, x, [&](auto to, auto from) {
    each_element(y, ScaledCopy(), Write<decltype(to)>(y), Read<decltype(from)>(x), Factor(a));
  });
}
void axpy(const Tensor& y, Scalar a, const Tensor& x) {
  each_type(y, x, [&](auto to, auto from) {
    each_element(y, Axpy(), Change<decltype(to)>(y), Read<decltype(from)>(x), Factor(a));
  });
}
void lerp(const Tensor& y, const Tensor& x, Scalar t) {
  check_pair(y, x);
  each_element(y, Lerp(), Change(y), Read(x), Factor(t));
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
  low.with([&]<class Low>(std::type_identity<Low>) {
    const auto run = [&]<bool kMomentum, bool kNesterov>(auto v) {
      if (u.segments)
        each_element(u.x, SegmentedSgd<kMomentum, kNesterov>(), Change(u.x), Write<Low>(low.values), v,
                     Read(u.g), Read(u.at), OfSegment(*u.segments, u.segments->rates()),
                     OfSegment(*u.segments, u.segments->decays()), IsOff(u.on), Factor(u.lr), Factor(u.mu),
                     Factor(u.decay));
      else
        each_element(u.x, Sgd<kMomentum, kNesterov>(), Change(u.x), Write<Low>(low.values), v, Read(u.g),
                     Read(u.at), Below{u.decayed}, IsOff(u.on), Factor(u.lr), Factor(u.mu), Factor(u.decay));
    };
    if (!momentum)
      run.template operator()<false, false>(Change<void>(u.v));
    else if (u.nesterov)
      run.template operator()<true, true>(Change(u.v));
    else
      run.template operator()<true, false>(Change(u.v));
  });
  low.done();
}

}  // namespace skein
