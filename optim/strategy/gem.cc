// Gradient energy matching: what asynchronous workers move the center by together has the energy of one with
// momentum. Hermans & Louppe, 2018, with the clamp of the published code, without which it is not stable.
//
//   theta   the center, pulled, changed and committed in one turn
//   s       theta as this worker pulled it last
//   d       -eta (g + lambda x)
//   c       theta - s, what others have moved it
//   m       proxy momentum, mu m + d: the motion there should be
//   pi      (kappa |m| - |c|) / |d| in [0, 5]
//
// With n workers n + 1 commits share one |m|: pi is 10 / (n + 1) in the mean at mu = 0.9, and a worker alone
// is no momentum SGD. m takes the place of the local rule's momentum, which is not used; its weight decay is.
#include "engine/vectors/gem.h"
#include "engine/words/find_row.h"
#include "optim/center/turns.h"

namespace skein::optim {
namespace {

class GradientEnergyMatching final : public Centered {
 public:
  GradientEnergyMatching(const Options& o, int world)
      : Centered(o, world),
        mu_(o.number("gem-momentum", 0.9, 0, 0.99999)),
        kappa_(o.number("kappa", 1, 0)),
        at_theta_(gradient_at_theta(o)) {
    needs_plain_sgd(o, "gem", "has a momentum of its own in the place of the optimizer's");
    needs_one_rate(o, "gem");
  }

  void start(Worker& me) override {
    Centered::start(me);
    m_ = Tensor::zeros(me.x.shape(), kF32, me.x.device());
    s_ = me.x.clone();
  }

  Tensor iterate(Worker& me, int64_t) override {
    const Tensor loss = me.gradient();
    if (me.share == 0) return loss;
    const Tensor u = turns_.blank(me.x);  // written where, and in the type, it is sent
    const Rule::Decay decay = me.rule.decay();
    const comm::Message theta = turns_.open();
    gem_update({.x = me.x,
                .m = m_,
                .s = s_,
                .u = u,
                .pi = {},
                .g = me.g,
                .theta = beside(me.x, theta.payload),
                .lr = me.lr,
                .mu = mu_,
                .kappa = kappa_,
                .decay = decay.rate,
                .decayed = decay.elements,
                .at_theta = at_theta_,
                .on = me.rule.on(),
                .segments = decay.segments});
    turns_.saw(s_, int64_t(theta.weight));
    turns_.commit(u);  // u = pi d
    turns_.saw(s_, int64_t(theta.weight) + 1, u);
    return loss;
  }

  void visit(Archive& a) override { a("m", m_), a("s", s_), Centered::visit(a); }

 private:
  Center::Column column() const override {
    return [](Turn& t) {
      t.give(t.theta, t.version);
      axpy(t.theta, 1.f, t.take().payload);  // theta <- theta + u
    };
  }
  static bool gradient_at_theta(const Options& o) {
    return one_of<bool>("--gem-gradient-at", o.word("gem-gradient-at", "own"),
                        {{"own", false}, {"theta", true}});
  }

  const double mu_, kappa_;
  const bool at_theta_;
  Tensor m_, s_;
};

}  // namespace

std::unique_ptr<Strategy> make_gem(const Options& o, int world) {
  return std::make_unique<GradientEnergyMatching>(o, world);
}

}  // namespace skein::optim
