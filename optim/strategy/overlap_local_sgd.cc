// Overlap-Local-SGD: models are pulled to an anchor one round old, and averaged during the next round.
// Wang, Liang & Joshi, ICASSP 2020.
//
//   z  the anchor      m  its momentum, per unit of rate, decays by beta      alpha  strength of the pull
#include "engine/vectors/vec.h"
#include "optim/periodic/periodic.h"

namespace skein::optim {
namespace {

class OverlapLocalSgd final : public Overlapped {
 public:
  explicit OverlapLocalSgd(const Options& o)
      : Overlapped(o), alpha_(o.number("alpha", 0.6, 0, 1)), beta_(o.number("beta", 0.7, 0, 1)) {}

  void start(Worker& me) override {
    z_ = me.x.clone(), m_ = Tensor::zeros(z_.shape(), kF32, z_.device());
    Overlapped::start(me);
  }

  Tensor iterate(Worker& me, int64_t k) override {
    flight_.carry_on(me);
    const Tensor loss = me.gradient();  // meanwhile the mean of the models pulled a round ago is made
    if (!round_.ends(k)) {
      me.local_step(me.x);  // x_i <- x_i - eta u_i
      return loss;
    }
    const Means mean = flight_.land();
    me.local_step(me.x);
    if (mean.x)
      slow_momentum(z_, m_, mean.x, beta_, 1, eta_);  // m <- beta m + (z - mean) / eta; z <- z - eta m
    lerp(me.x, z_, alpha_);                           // x_i <- (1 - alpha) x_i + alpha z
    if (mean.buffers) lerp(me.buffers, mean.buffers, alpha_);
    flight_.set_out(me, me.x);
    eta_ = me.lr;  // of the mean that sets out now
    return loss;
  }

  void visit(Archive& a) override {
    a("z", z_), a("m", m_), a("eta", eta_);
    Overlapped::visit(a);
  }

 private:
  const double alpha_, beta_;
  Tensor z_, m_;
  double eta_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_overlap_local_sgd(const Options& o, int) {
  return std::make_unique<OverlapLocalSgd>(o);
}

}  // namespace skein::optim
