// PALSGD: DiLoCo whose workers draw lots before each step, and at times move towards the anchor instead of
// along a gradient: that costs nothing, and keeps them together over long rounds. Pseudo-Asynchronous Local
// SGD: Naganuma et al., TMLR 2025.
//
//   x_i    model of worker i         z   anchor, what all agreed on last      m    outer momentum
//   p      probability of a pull     alpha   its strength                     eta  this step's rate
//   Delta  z - mean x
#include <algorithm>

#include "engine/random.h"
#include "optim/periodic/outer.h"
#include "optim/periodic/periodic.h"

namespace skein::optim {
namespace {

class Palsgd final : public Anchored {
 public:
  explicit Palsgd(const Options& o)
      : Anchored(o, 100),
        outer_(o),
        p_(o.number("pull-probability", 0.1, 0, 1)),
        alpha_(o.number("alpha", 0.5, 0)),
        seed_(uint64_t(o.integer("seed", 0))) {}

  Tensor iterate(Worker& me, int64_t k) override {
    Tensor loss;
    if (is_pulled(me, k)) {
      loss = Tensor::zeros({1}, kF32, me.x.device());  // no gradient is taken
      // x_i <- x_i - (alpha eta / p) (x_i - z), but never past z, from where a high rate would
      // drive them apart
      lerp(me.x, z_, std::min(1., alpha_ * me.lr / p_));
    } else {
      loss = me.gradient();
      me.local_step(me.x);  // x_i <- x_i - eta u_i
    }
    if (const Tensor mean = round_.meet(me, k)) {
      outer_.step(round_.of(k), z_, m_, mean, me.x);  // x_i <- z <- OuterOpt(z, Delta)
      outer_.reset_inner(me.rule);
    }
    return loss;
  }

 private:
  // Each worker draws for itself, and draws the same when a step is repeated.
  bool is_pulled(const Worker& me, int64_t k) const {
    return Draw{seed_, Purpose::kPull, uint64_t(k), uint32_t(me.comm.rank())}.unit(0) < p_;
  }

  const Outer outer_;
  const double p_, alpha_;
  const uint64_t seed_;
};

}  // namespace

std::unique_ptr<Strategy> make_palsgd(const Options& o, int) { return std::make_unique<Palsgd>(o); }

}  // namespace skein::optim
