// Elastic averaging SGD, synchronous: models and a center pull at each other.
// Zhang, Choromanska & LeCun, NeurIPS 2015, section 3. EAMSGD, 3.2: Nesterov's local step. Where the paper
// moves x_i by its gradient and by the pull at once, the local step comes first here and the pull sees its
// result, as in the code published with LSGD (Teng et al., NeurIPS 2019).
//
//   x_i  model of worker i      z  the center, which every worker keeps: the same sums give the same bits
#include "engine/vectors/mixing.h"
#include "optim/periodic/periodic.h"

namespace skein::optim {
namespace {

class Easgd final : public Periodic {
 public:
  // Both pulls together multiply mean x - z by 1 - alpha (n + 1), which must not grow.
  Easgd(const Options& o, int world)
      : Periodic(o), alpha_(o.number("alpha", 0.9 / world, 0, 2.0 / (world + 1))) {}

  void start(Worker& me) override {
    z_ = me.x.clone();
    round_.start(me, z_);
    if (me.buffers) z_buffers_ = me.buffers.clone();
  }

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    if (const Means mean = round_.means(me, k)) {  // x_i <- x_i - eta u_i
      pull(me, me.x, z_, mean.x);
      if (mean.buffers) pull(me, me.buffers, z_buffers_, mean.buffers);
    }
    return loss;
  }

  void visit(Archive& a) override {
    a("z", z_), Periodic::visit(a);
    if (z_buffers_) a("z_buffers", z_buffers_);
  }
  Tensor contribution(Worker&) override { return z_; }
  void write_model(Worker&, const Tensor& y) override { copy(y, z_); }

 private:
  void pull(const Worker& me, const Tensor& x, const Tensor& z, const Tensor& mean) const {
    // x_i <- x_i - alpha (x_i - z), z <- z + alpha sum_i (x_i - z)
    elastic_pull(x, z, mean, alpha_, alpha_ * me.comm.size());
  }

  const double alpha_;
  Tensor z_, z_buffers_;
};

}  // namespace

std::unique_ptr<Strategy> make_easgd(const Options& o, int world) {
  return std::make_unique<Easgd>(o, world);
}

std::unique_ptr<Strategy> make_eamsgd(const Options& o, int world) {
  needs_plain_sgd(o, "eamsgd", "is easgd with Nesterov's momentum");
  if (!o.flag("nesterov", true))
    throw BadOption(
        "--algorithm eamsgd with --nesterov false or --momentum 0: allowed are --nesterov true and "
        "--momentum "
        "above 0, because Nesterov's momentum is what makes it eamsgd; without it take --algorithm easgd");
  return make_easgd(o, world);
}

}  // namespace skein::optim
