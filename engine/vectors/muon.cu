// Muon's momentum, normalization and step, with a functor for each.
#include "engine/vectors/muon.h"

#include <cmath>

#include "engine/vectors/elementwise.h"
#include "engine/vectors/narrow.h"

namespace skein {
namespace {

struct Momentum {
  float beta, rest;
  HD void operator()(float& b, float& u, float g, float off) const {
    const float next = b + rest * (g - b);
    b = off > 0 ? b : next;
    const float along = g + beta * (next - g);
    u = off > 0 ? 0.f : along;
  }
};
struct Inverse {
  float* y;
  const float* squares;
  HD void operator()(int64_t s) const { y[s] = squares[s] > 0 ? 1 / sqrtf(squares[s]) : 0.f; }
};
struct Scaled {
  HD void operator()(float& u, float by) const { u *= by; }
};
struct Step {
  float decay;
  HD void operator()(float& x, float& low, float u, float at, float scale, float rate, float decays,
                     float off, float lr) const {
    const float next = x - lr * rate * (scale * u + decay * decays * at);
    x = off > 0 ? x : next;
    low = x;
  }
};

}  // namespace

void muon_direction(const Tensor& b, const Tensor& u, const Tensor& g, float beta, const float* on) {
  for (const Tensor* t : {&u, &g})
    CHECK(t->size() == b.size() && t->device() == b.device(), t->shape(), b.shape(), t->device());
  each_element(b, Momentum{beta, float(1 - double(beta))}, Change(b), Write(u), Read(g), IsOff(on));
}

void normalize_segments(const Tensor& u, const Segments& s) {
  const int64_t n = int64_t(s.all().size());
  const Tensor by({n}, kF32, u.device());
  s.sum_squares(by, u);
  for_each(u.device(), n, Inverse{by.out<float>(), by.in<float>()});
  each_element(u, Scaled(), Change(u), OfSegment(s, by));
}

void muon_step(const MuonStep& a, Scalar lr) {
  for (const Tensor* t : {&a.u, &a.at})
    CHECK(t->size() == a.x.size() && t->device() == a.x.device(), t->shape(), a.x.shape(), t->device());
  const Segments& s = a.segments;
  NarrowPass low(a.x);
  low.with([&]<class Low>(std::type_identity<Low>) {
    each_element(a.x, Step{a.decay}, Change(a.x), Write<Low>(low.values), Read(a.u), Read(a.at),
                 OfSegment(s, a.scale), OfSegment(s, s.rates()), OfSegment(s, s.decays()), IsOff(a.on),
                 Factor(lr));
  });
  low.done();
}

}  // namespace skein
