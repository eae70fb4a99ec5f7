// Asynchronous elastic averaging SGD: each worker and the center pull at each other, one worker at a time.
// Zhang, Choromanska & LeCun, NeurIPS 2015, Algorithm 1; with Nesterov's local momentum, Algorithm 2
// (eamsgd-async). The paper's worker pulls first and then steps; here it steps first, so that a round ends
// with the pull, as in the synchronous form.
//
//   theta   the center          e   the elastic difference alpha (x - theta), both at their old values
#include "engine/vectors/mixing.h"
#include "optim/center/turns.h"
#include "optim/periodic/periodic.h"

namespace skein::optim {
namespace {

class EasgdAsync final : public Centered {
 public:
  EasgdAsync(const Options& o, int world)
      : Centered(o, world), round_(o, 10), alpha_(o.number("alpha", 0.9 / world, 0, 1)) {}

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    me.local_step(me.x);
    if (!round_.ends(k)) return loss;
    const comm::Message e = turns_.exchange(me.x);
    const Tensor moved = beside(me.x, e.payload);
    if (alpha_ > 0) turns_.saw(center_after(me.x, moved), int64_t(e.weight));
    axpy(me.x, -1.f, moved);  // x <- x - e
    return loss;
  }

 private:
  Center::Column column() const override {
    return [alpha = alpha_](Turn& t) {
      const Tensor e(t.theta.shape());
      elastic_commit(t.theta, e, t.take().payload, alpha);  // e = alpha (x - theta), theta <- theta + e
      t.give(e, t.version + 1);
    };
  }

  // theta after a turn in which it was x that e = alpha (x - theta) was computed from: x - e / alpha + e.
  Tensor center_after(const Tensor& x, const Tensor& e) const {
    Tensor theta = x.clone();
    axpy(theta, float(1 - 1 / alpha_), e);
    return theta;
  }

  const Period round_;
  const double alpha_;
};

}  // namespace

std::unique_ptr<Strategy> make_easgd_async(const Options& o, int world) {
  return std::make_unique<EasgdAsync>(o, world);
}
std::unique_ptr<Strategy> make_eamsgd_async(const Options& o, int world) {
  needs_plain_sgd(o, "eamsgd-async", "is easgd-async with Nesterov's momentum");
  return make_easgd_async(o, world);
}

}  // namespace skein::optim
