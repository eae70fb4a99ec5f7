// D-PSGD with quasi-global momentum: momentum is taken from the whole change of x, gossip included, instead
// of the local gradient, so that unequal data do not pull the workers' momenta apart. Lin, Karimireddy,
// Stich & Jaggi, ICML 2021, Algorithm 1, with heavy-ball momentum; the gossip overlaps forward and backward
// as in D-PSGD.
//
//   x_i   model of worker i               m_i     momentum, in units of a gradient      mu  its decay
//   W_ij  symmetric mixing weights        lambda  weight decay, of the rule
#include "engine/vectors/vec.h"
#include "optim/gossip/exact_average.h"

namespace skein::optim {
namespace {

class QuasiGlobal final : public GossipingX {
 public:
  QuasiGlobal(const Options& o, int world)
      : GossipingX(o, world, "ring", 2, "qg-dsgdm"), mu_(o.number("qg-momentum", 0.9, 0, 0.99999)) {
    needs_plain_sgd(o, "qg-dsgdm", "has a momentum of its own in the place of the optimizer's");
    needs_one_rate(o, "qg-dsgdm");
  }

  void start(Worker& me) override {
    next_ = me.x.clone(), u_ = me.x.clone(), GossipingX::start(me);
    m_ = Tensor::zeros(me.x.shape(), kF32, me.x.device());
  }

  Tensor iterate(Worker& me, int64_t k) override {
    gossip_.give(me, k, me.x);          // x_i(k) sets out,
    const Tensor loss = me.gradient();  // and travels during forward and backward
    gossip_.take(me, k, next_, me.x);   // x_i(k+1) = sum_j W_ij x_j(k)
    if (me.share > 0) step(me);         //            - eta (g_i + lambda x_i(k) + mu m_i)
    if (me.lr > 0) {                    // m_i <- mu m_i + (1 - mu) (x_i(k) - x_i(k+1)) / eta
      outer_step({.z = me.x,
                  .m = m_,
                  .mean = next_,
                  .decay = mu_,
                  .gain = (mu_ - 1) * gain(me) / me.lr,
                  .along = 0.f});
    }
    copy(me.x, next_);
    return loss;
  }

  void visit(Archive& a) override { a("m", m_), GossipingX::visit(a); }

 private:
  // What weighs this worker's samples in its rate (Model::kGossip). m_i is all workers' motion, and
  // is not weighed.
  static double gain(const Worker& me) { return me.weight == 0 ? 1 : me.weight * me.comm.size(); }

  void step(Worker& me) const {
    copy(u_, me.g);
    if (gain(me) != 1) scale(u_, gain(me));
    axpy(u_, mu_, m_);
    const Rule::Decay decay = me.rule.decay();
    sgd_update({.x = next_,
                .v = {},
                .g = u_,
                .at = me.x,
                .lr = me.lr / gain(me),
                .decay = decay.rate,
                .decayed = decay.elements,
                .on = me.rule.on(),
                .segments = decay.segments});
  }

  const double mu_;
  Tensor m_;
  Tensor next_, u_;  // scratch
};

}  // namespace

std::unique_ptr<Strategy> make_qg_dsgdm(const Options& o, int world) {
  return with_exact_average<QuasiGlobal>(o, world);
}

}  // namespace skein::optim
