// Passes of primal averaging and of the step uphill.
#include "engine/vectors/primal.h"

#include <cmath>

#include "engine/vectors/elementwise.h"
#include "engine/vectors/narrow.h"

namespace skein {
namespace {

struct Primal {
  float mu_y;
  HD void operator()(float& y, float& low, float& d, float u, float rate, float off, float lr,
                     float mu_x) const {
    const float step = lr * rate * u;
    const float next_y = y + (1 - mu_x) * d - (1 - mu_x * mu_y) * step, next_d = mu_x * (d - mu_y * step);
    y = off > 0 ? y : next_y;
    d = off > 0 ? d : next_d;
    low = y;
  }
};

struct Weigh {
  float* state;
  Scalar lr;
  const float* on;
  HD void operator()(int64_t) const {
    if (on && *on == 0) return;
    const float rate = lr.get(), w = rate > state[0] ? rate : state[0];
    const float sum = state[1] + w * w;
    state[0] = w, state[1] = sum;
    state[2] = sum > 0 ? 1 - w * w / sum : 0.f;
  }
};

struct Uphill {
  HD void operator()(float& x, float& low, float& before, float g, float squares, float radius) const {
    before = x;
    x += squares > 0 ? radius / sqrtf(squares) * g : 0.f;
    low = x;
  }
};
struct Back {
  HD void operator()(float& x, float& low, float before) const { x = before, low = before; }
};

}  // namespace

void primal_step(const PrimalArgs& a, Scalar lr) {
  for (const Tensor* t : {&a.d, &a.u})
    CHECK(t->size() == a.y.size() && t->device() == a.y.device(), t->shape(), a.y.shape(), t->device());
  NarrowPass low(a.y);
  low.with([&]<class Low>(std::type_identity<Low>) {
    each_element(a.y, Primal{a.mu_y}, Change(a.y), Write<Low>(low.values), Change(a.d), Read(a.u),
                 OfSegment(a.segments, a.segments.rates()), IsOff(a.on), Factor(lr), Factor(a.mu_x));
  });
  low.done();
}

ScheduleFree::ScheduleFree(Device d) : state_(Tensor::zeros({3}, kF32, d)) {}
void ScheduleFree::tick(Scalar lr, const float* on) const {
  for_each(state_.device(), 1, Weigh{state_.out<float>(), lr, on});
}

Ascent::Ascent(const Tensor& x, float radius)
    : x_(x), before_(x.shape(), kF32, x.device()), all_(Segments::one(x)), radius_(radius) {}

void Ascent::up(const Tensor& g) const {
  const Tensor squares({1}, kF32, x_.device());
  all_.sum_squares(squares, g);
  NarrowPass low(x_);
  low.with([&]<class Low>(std::type_identity<Low>) {
    each_element(x_, Uphill(), Change(x_), Write<Low>(low.values), Write(before_), Read(g),
                 Factor(Scalar::at(squares.in<float>())), Factor(radius_));
  });
  low.done();
}

void Ascent::down() const {
  NarrowPass low(x_);
  low.with([&]<class Low>(std::type_identity<Low>) {
    each_element(x_, Back(), Write(x_), Write<Low>(low.values), Read(before_));
  });
  low.done();
}

}  // namespace skein
