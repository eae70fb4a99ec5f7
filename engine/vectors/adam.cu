// Adam's moments in one pass, and what LAMB does with its direction.
#include "engine/vectors/adam.h"

#include <cmath>

#include "engine/vectors/elementwise.h"
#include "engine/vectors/narrow.h"

namespace skein {
namespace {

struct Tick {
  float* state;
  double beta1, beta2;
  const float* on;
  HD void operator()(int64_t) const {
    if (on && *on == 0) return;
    const double t = double(state[0]) + 1;
    state[0] = float(t);
    state[1] = float(1 / (1 - pow(beta1, t)));
    state[2] = float(1 / sqrt(1 - pow(beta2, t)));
  }
};

// `keep` and `take` of a mean: beta and 1 - beta, the latter rounded once.
struct Means {
  float keep1, take1, keep2, take2, epsilon, decay;
  HD float direction(float& m, float& v, float g, float at, float decays, float off, float first,
                     float second) const {
    const float next_m = keep1 * m + take1 * g, next_v = keep2 * v + take2 * g * g;
    m = off > 0 ? m : next_m;
    v = off > 0 ? v : next_v;
    const float u = first * next_m / (second * sqrtf(next_v) + epsilon) + decay * decays * at;
    return off > 0 ? 0.f : u;
  }
};
struct Step {
  Means means;
  HD void operator()(float& x, float& low, float& m, float& v, float g, float at, float rate, float decays,
                     float off, float lr, float first, float second) const {
    x -= lr * rate * means.direction(m, v, g, at, decays, off, first, second);
    low = x;
  }
};
struct Direction {
  Means means;
  HD void operator()(float& u, float& m, float& v, float g, float at, float decays, float off, float first,
                     float second) const {
    u = means.direction(m, v, g, at, decays, off, first, second);
  }
};
struct Along {
  HD void operator()(float& x, float& low, float u, float factor, float lr) const {
    x -= lr * factor * u;
    low = x;
  }
};

struct Trust {
  float* f;
  const float *w, *u, *rate, *part;
  float decay;
  HD void operator()(int64_t s) const {
    const bool adapts = decay * part[s] > 0 && w[s] > 0 && u[s] > 0;
    f[s] = rate[s] * (adapts ? sqrtf(w[s]) / sqrtf(u[s]) : 1.f);
  }
};

Means means_of(const AdamArgs& a) {
  return {float(a.beta1),     float(1 - a.beta1), float(a.beta2),
          float(1 - a.beta2), float(a.epsilon),   float(a.decay)};
}
void check(const Tensor& x, const AdamArgs& a) {
  for (const Tensor* t : {&a.m, &a.v, &a.g, &a.at})
    CHECK(t->size() == x.size() && t->device() == x.device(), t->shape(), x.shape(), t->device());
  CHECK(a.segments.size() == x.size() && a.segments.device() == x.device(), a.segments.size(), x.shape());
}

}  // namespace

AdamClock::AdamClock(Device d) : state_(Tensor::zeros({3}, kF32, d)) {}
void AdamClock::tick(double beta1, double beta2, const float* on) const {
  for_each(state_.device(), 1, Tick{state_.out<float>(), beta1, beta2, on});
}

void adam_step(const Tensor& x, const AdamArgs& a, Scalar lr) {
  check(x, a);
  NarrowPass low(x);
  low.with([&]<class Low>(std::type_identity<Low>) {
    each_element(x, Step{means_of(a)}, Change(x), Write<Low>(low.values), Change(a.m), Change(a.v), Read(a.g),
                 Read(a.at), OfSegment(a.segments, a.segments.rates()),
                 OfSegment(a.segments, a.segments.decays()), IsOff(a.on), Factor(lr), Factor(a.first),
                 Factor(a.second));
  });
  low.done();
}

void adam_direction(const Tensor& u, const AdamArgs& a) {
  check(u, a);
  each_element(u, Direction{means_of(a)}, Write(u), Change(a.m), Change(a.v), Read(a.g), Read(a.at),
               OfSegment(a.segments, a.segments.decays()), IsOff(a.on), Factor(a.first), Factor(a.second));
}

void segment_step(const Tensor& x, const Tensor& u, const Segments& s, const Tensor& factors, Scalar lr) {
  CHECK(x.size() == u.size() && x.size() == s.size() && x.device() == u.device(), x.shape(), u.shape());
  NarrowPass low(x);
  low.with([&]<class Low>(std::type_identity<Low>) {
    each_element(x, Along(), Change(x), Write<Low>(low.values), Read(u), OfSegment(s, factors), Factor(lr));
  });
  low.done();
}

void trust_ratios(const Tensor& f, const Segments& s, double decay, const Tensor& squares_w,
                  const Tensor& squares_u) {
  for_each(f.device(), int64_t(s.all().size()),
           Trust{f.out<float>(), squares_w.in<float>(), squares_u.in<float>(), s.rates().in<float>(),
                 s.decays().in<float>(), float(decay)});
}

}  // namespace skein
