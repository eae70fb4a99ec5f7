// NoLoCo: DiLoCo's outer step towards the mean of two workers, in random pairs for each round,
// without a collective. Kolehmainen et al., 2025, as its published program computes: one rate for
// both of the paper's terms,
//   nu mean_g(x - z) + nu (mean_g z - z_i) = nu (mean_g x - z_i).
//
//   z_i  anchor of worker i      m_i     outer momentum, at home      g  the pair, by --topology random
//   tau  steps in a round        nu, mu  outer rate and momentum
#include "optim/gossip/exact_average.h"
#include "optim/periodic/periodic.h"

namespace skein::optim {
namespace {

class NoLoCo final : public GossipingX, public InRounds {
 public:
  NoLoCo(const Options& o, int world)
      : GossipingX(o, world, "random", 1, nullptr, Period(o, kTau).steps()),
        period_(o, kTau),
        nu_(o.number("outer-lr", 0.7, 0)),
        mu_(o.number("outer-momentum", 0.5, 0, 1)) {}

  void start(Worker& me) override {
    z_ = me.x.clone(), mean_ = me.x.clone(), GossipingX::start(me);
    m_ = Tensor::zeros(z_.shape(), kF32, z_.device());
  }

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    me.local_step(me.x);  // x_i <- x_i - eta u_i
    if (!period_.ends(k)) return loss;
    const int64_t round = k / period_.steps();
    gossip_.give(me, round, me.x);
    gossip_.take(me, round, mean_, me.x);  // mean_g x
    // m_i <- mu m_i + nu (mean_g x - z_i), x_i <- z_i <- z_i + m_i
    outer_step({.z = z_, .m = m_, .mean = mean_, .x = me.x, .decay = mu_, .gain = nu_});
    return loss;
  }

  void average(Worker& me) override {
    GossipingX::average(me);
    copy(z_, me.x);
  }

  Shared shared() override {
    return {.is = [this](int64_t k) { return period_.begins(k); }, .arrived = {}};
  }
  void visit(Archive& a) override { a("z", z_), a("m", m_), GossipingX::visit(a); }

 private:
  static constexpr int64_t kTau = 50;
  const Period period_;
  const double nu_, mu_;
  Tensor z_, m_;
  Tensor mean_;  // scratch
};

}  // namespace

std::unique_ptr<Strategy> make_noloco(const Options& o, int world) {
  return with_exact_average<NoLoCo>(o, world);
}

}  // namespace skein::optim
