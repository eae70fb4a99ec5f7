// Momentum across rounds: SlowMo, and the older block-wise model update filtering (BMUF).
// SlowMo: Wang, Tantia, Ballas & Rabbat, ICLR 2020, Algorithm 1.  BMUF: Chen & Huo, ICASSP 2016.
//
//   z  the anchor, where all began the round      m  slow momentum, per unit of rate      beta  its decay
//   D  filtered update of a block, that is a round      alpha, zeta  outer rate, block rate
#include "engine/vectors/mixing.h"
#include "optim/periodic/periodic.h"

namespace skein::optim {
namespace {

class SlowMo final : public Anchored {
 public:
  explicit SlowMo(const Options& o)
      : Anchored(o, 12),
        alpha_(o.number("alpha", 1, 0)),
        beta_(o.number("beta", 0.5, 0, 1)),
        reset_inner_(o.flag("reset-inner", false)) {}

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    if (const Tensor mean = round_.step(me, k)) {  // x_i <- x_i - eta u_i
      // m <- beta m + (z - mean x) / eta, x_i <- z <- z - alpha eta m
      slow_momentum(z_, m_, mean, beta_, alpha_, me.lr, me.x);
      if (reset_inner_) me.rule.reset();
    }
    return loss;
  }

 private:
  const double alpha_, beta_;
  const bool reset_inner_;
};

class Bmuf final : public Anchored {
 public:
  explicit Bmuf(const Options& o)
      : Anchored(o, 4, "D"),
        zeta_(o.number("zeta", 1, 0)),
        beta_(o.number("beta", 0.9, 0, 1)),
        nesterov_(o.flag("outer-nesterov", false)) {}

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    if (const Tensor mean = round_.step(me, k)) {  // x_i <- x_i - eta u_i
      // D <- beta D + zeta (mean x - z), then x_i <- z <- z + D, or z + beta D + zeta (mean x - z)
      outer_step({.z = z_,
                  .m = m_,  // D
                  .mean = mean,
                  .x = me.x,
                  .decay = beta_,
                  .gain = zeta_,
                  .along = nesterov_ ? beta_ : 1,
                  .beside = nesterov_ ? zeta_ : 0});
    }
    return loss;
  }

 private:
  const double zeta_, beta_;
  const bool nesterov_;
};

}  // namespace

std::unique_ptr<Strategy> make_slowmo(const Options& o, int) { return std::make_unique<SlowMo>(o); }
std::unique_ptr<Strategy> make_bmuf(const Options& o, int) { return std::make_unique<Bmuf>(o); }

}  // namespace skein::optim
