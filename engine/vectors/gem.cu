// Gradient energy matching, one functor.
#include "engine/vectors/gem.h"

#include <cfloat>
#include <cmath>

#include "engine/vectors/elementwise.h"
#include "engine/vectors/narrow.h"

namespace skein {
namespace {

// kAtTheta says that x is theta. As a member it would keep the host's loop from being vectorized.
template <bool kAtTheta>
struct Gem {
  float least, most;
  HD void operator()(float& x, float& low, float& m, float& s, float& u, float& pi, float g, float theta,
                     bool decays, float off, float lr, float mu, float kappa, float decay) const {
    step(x, low, m, s, u, pi, -lr * (decays ? g + decay * x : g), theta, off, mu, kappa);
  }
  HD void step(float& x, float& low, float& m, float& s, float& u, float& pi, float d, float theta, float off,
               float mu, float kappa) const {
    const float pushed = mu * m + d;
    const float energy = kappa * fabsf(pushed) - fabsf(theta - s);
    // Comparisons instead of min and max: a NaN compares false, so pi is always a number.
    const float size = fabsf(d) > FLT_MIN ? fabsf(d) : FLT_MIN, ratio = energy > 0 ? energy / size : 0.f;
    const float from = off > 0 ? 0.f : least, to = off > 0 ? 0.f : most;
    pi = ratio > from ? (ratio < to ? ratio : to) : from;
    u = pi > 0 ? pi * d : pi;  // pi is 0 here; a constant 0 would make a branch with its own stores
    m = off > 0 ? m : pushed;
    s = theta;
    x = kAtTheta ? theta : theta + u;
    low = x;
  }
};
template <bool kAtTheta>
struct SegmentedGem {
  Gem<kAtTheta> gem;
  HD void operator()(float& x, float& low, float& m, float& s, float& u, float& pi, float g, float theta,
                     float decays, float off, float lr, float mu, float kappa, float decay) const {
    gem.step(x, low, m, s, u, pi, -lr * (g + decay * decays * x), theta, off, mu, kappa);
  }
};

}  // namespace

void gem_update(const GemArgs& a) {
  for (const Tensor* t : {&a.m, &a.s, &a.u, &a.g, &a.theta})
    CHECK(t->size() == a.x.size() && t->device() == a.x.device(), t->shape(), a.x.shape(), t->device());
  CHECK(!a.segments || a.segments->size() == a.x.size(), a.segments->size(), a.x.shape());
  CHECK(!a.pi || a.pi.size() == a.x.size(), a.pi.shape(), a.x.shape());
  NarrowPass low(a.x);
  visit_float(a.u.dtype(), [&](auto zero) {
    using U = decltype(zero);
    low.with([&]<class Low>(std::type_identity<Low>) {
      const auto run = [&](auto gem, auto decays) {
        each_element(a.x, gem, Change(a.x), Write<Low>(low.values), Change(a.m), Change(a.s), Write<U>(a.u),
                     WriteIfGiven(a.pi), Read(a.g), Read(a.theta), decays, IsOff(a.on), Factor(a.lr),
                     Factor(a.mu), Factor(a.kappa), Factor(a.decay));
      };
      const auto run_with = [&]<bool kAtTheta>(Gem<kAtTheta> gem) {
        if (a.segments)
          run(SegmentedGem<kAtTheta>{gem}, OfSegment(*a.segments, a.segments->decays()));
        else
          run(gem, Below{a.decayed});
      };
      a.at_theta ? run_with(Gem<true>{a.least, a.most}) : run_with(Gem<false>{a.least, a.most});
    });
  });
  low.done();
}

}  // namespace skein
