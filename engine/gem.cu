// Gradient energy matching, one functor.
#include "engine/gem.h"

#include <cfloat>
#include <cmath>

#include "engine/narrow.h"
#include "engine/packets.h"

namespace skein {
namespace {

// Told while compiling that x is theta: asked for each element, it would keep the loop from becoming vector code.
template <bool kAtTheta, class Low, class U>
struct Gem {
  float *x, *m, *s, *pi;
  U* u;
  const float *g, *theta;
  Low* low;
  Scalar lr, mu, kappa, decay;
  int64_t decayed;
  float least, most;
  const float* on;
  float none = 0;  // 1: the pass is off
  // The host asks `on` once. What is off is a number to compare with, not a branch, which would keep the loop
  // from becoming vector code.
  void settle() {
    settle_all(lr, mu, kappa, decay);
    if (on && *on == 0) none = 1, least = most = 0;
    on = nullptr;
  }
  template <int N>
  HD void operator()(int64_t i, Lanes<N>) const {
    float xs[N], ms[N], ss[N], us[N], ps[N], gs[N], ts[N];
    load(xs, x, i), load(ms, m, i), load(ss, s, i), load(gs, g, i), load(ts, theta, i);
    float stay = none, low_pi = least, high_pi = most;
    if (on && *on == 0) stay = 1, low_pi = high_pi = 0;
    for (int j = 0; j < N; ++j) {
      const float d = -lr.get() * (i + j < decayed ? gs[j] + decay.get() * xs[j] : gs[j]);
      const float mi = mu.get() * ms[j] + d;
      const float energy = kappa.get() * fabsf(mi) - fabsf(ts[j] - ss[j]);
      // Compared, not min'ed and max'ed: what is no number compares false, so pi is a number.
      const float size = fabsf(d) > FLT_MIN ? fabsf(d) : FLT_MIN, ratio = energy > 0 ? energy / size : 0.f;
      ps[j] = ratio > low_pi ? (ratio < high_pi ? ratio : high_pi) : low_pi;
      us[j] = ps[j] > 0 ? ps[j] * d : ps[j];  // 0; the constant would make a branch with stores of its own
      ms[j] = stay > 0 ? ms[j] : mi;
      xs[j] = kAtTheta ? ts[j] : ts[j] + us[j];
    }
    store(x, i, xs), store(m, i, ms), store(s, i, ts), store(u, i, us);
    if (pi) store(pi, i, ps);
    if constexpr (!std::is_void_v<Low>) store(low, i, xs);
  }
};

}  // namespace

void gem_update(const GemArgs& a) {
  for (const Tensor* t : {&a.m, &a.s, &a.u, &a.g, &a.theta})
    CHECK(t->size() == a.x.size() && t->device() == a.x.device(), t->shape(), a.x.shape(), t->device());
  CHECK(!a.pi || a.pi.size() == a.x.size(), a.pi.shape(), a.x.shape());
  NarrowPass low(a.x);
  const bool packets = aligned({&a.x, &a.m, &a.s, &a.u, &a.pi, &a.g, &a.theta, &low.values});
  const auto run = [&](auto functor) { for_each_packet(a.x.device(), a.x.size(), packets, functor); };
  float *const x = a.x.out<float>(), *const m = a.m.out<float>(), *const s = a.s.out<float>(),
               *const pi = a.pi ? a.pi.out<float>() : nullptr;
  const float *const g = a.g.in<float>(), *const theta = a.theta.in<float>();
  visit_float(a.u.dtype(), [&](auto zero) {
    using U = decltype(zero);
    U* const u = a.u.out<U>();
    low.with([&](auto* to) {
      using Low = std::remove_pointer_t<decltype(to)>;
      const auto with = [&]<bool kAtTheta>(std::bool_constant<kAtTheta>) {
        run(Gem<kAtTheta, Low, U>{x, m, s, pi, u, g, theta, to, a.lr, a.mu, a.kappa, a.decay, a.decayed,
                                  a.least, a.most, a.on});
      };
      a.at_theta ? with(std::true_type()) : with(std::false_type());
    });
  });
  low.done();
}

}  // namespace skein
