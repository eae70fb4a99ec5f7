// Gradient energy matching, one functor.
#include "engine/gem.h"

#include <cfloat>
#include <cmath>

#include "engine/launch.h"

namespace skein {
namespace {

struct Gem {
  float *x, *m, *s, *u, *pi;
  const float *g, *theta;
  Scalar lr, mu, kappa, decay;
  int64_t decayed;
  float least, most;
  bool at_theta;
  const float* on;
  HD void operator()(int64_t i) const {
    if (on && *on == 0) {
      u[i] = 0;
      x[i] = s[i] = theta[i];
      if (pi) pi[i] = 0;
      return;
    }
    const float d = -lr.get() * (i < decayed ? g[i] + decay.get() * x[i] : g[i]);
    const float mi = mu.get() * m[i] + d;
    const float energy = kappa.get() * fabsf(mi) - fabsf(theta[i] - s[i]);
    // Compared, not min'ed and max'ed: what is no number compares false, so pi is a number whatever comes in.
    const float size = fabsf(d) > FLT_MIN ? fabsf(d) : FLT_MIN, ratio = energy > 0 ? energy / size : 0.f;
    const float p = ratio > least ? (ratio < most ? ratio : most) : least;
    const float ui = p > 0 ? p * d : 0.f;
    m[i] = mi;
    u[i] = ui;
    s[i] = theta[i];
    x[i] = at_theta ? theta[i] : theta[i] + ui;
    if (pi) pi[i] = p;
  }
};

}  // namespace

void gem_update(const GemArgs& a) {
  for (const Tensor* t : {&a.m, &a.s, &a.u, &a.g, &a.theta})
    CHECK(t->size() == a.x.size() && t->device() == a.x.device(), t->shape(), a.x.shape(), t->device());
  CHECK(!a.pi || a.pi.size() == a.x.size(), a.pi.shape(), a.x.shape());
  const Gem f{a.x.data<float>(),
              a.m.data<float>(),
              a.s.data<float>(),
              a.u.data<float>(),
              a.pi ? a.pi.data<float>() : nullptr,
              a.g.data<float>(),
              a.theta.data<float>(),
              a.lr,
              a.mu,
              a.kappa,
              a.decay,
              a.decayed,
              a.least,
              a.most,
              a.at_theta,
              a.on && !a.x.device().is_cuda() && *a.on != 0 ? nullptr : a.on};  // the host asks once
  for_each(a.x.device(), a.x.size(), f);
}

}  // namespace skein
