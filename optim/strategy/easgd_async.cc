// Asynchronous elastic averaging SGD: each worker and the center pull at each other, one worker at a time.
// Zhang, Choromanska & LeCun, NeurIPS 2015, Algorithm 1; with Nesterov's local momentum, Algorithm 2
// (eamsgd-async). The paper's worker pulls first and then steps; here it steps first, so that a round ends
// with the pull, as in the synchronous form.
//
//   theta   the center          e   the elastic difference alpha (x - theta), both at their old values
#include "engine/mixing.h"
#include "optim/turns.h"

namespace skein::optim {
namespace {

class EasgdAsync final : public Strategy {
 public:
  EasgdAsync(const Options& o, int world)
      : tau_(o.integer("tau", 10)),
        alpha_(o.number("alpha", 0.9 / world)),
        turns_(o, world, [this](Turn& t) { column(t); }) {
    if (tau_ < 1) throw BadOption(text("--tau ", tau_, ": at least one local step between pulls is needed"));
    if (!(alpha_ >= 0 && alpha_ <= 1)) throw BadOption(text("--alpha ", alpha_, ": allowed are 0 to 1"));
  }

  void start(Worker& me) override { turns_.start(me); }

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    me.local_step(me.x);
    if ((k + 1) % tau_ != 0) return loss;
    const comm::Message e = turns_.exchange(me.x);
    axpy(me.x, -1.f, beside(me.x, e.payload));  // x <- x - e
    return loss;
  }

  void settle(Worker& me) override { turns_.settle(me); }
  void evaluated(Worker& me, const Tensor& y) override { turns_.evaluated(me, y); }
  void serve(comm::Communicator& hub) override { turns_.serve(hub); }
  void visit(Archive& a) override { turns_.visit(a); }

 private:
  void column(Turn& t) {
    const Tensor e(t.theta.shape());
    elastic_commit(t.theta, e, t.take().payload, alpha_);  // e = alpha (x - theta), theta <- theta + e
    t.give(e, t.version + 1);
  }

  const int64_t tau_;
  const double alpha_;
  Turns turns_;
};

}  // namespace

std::unique_ptr<Strategy> make_easgd_async(const Options& o, int world) {
  return std::make_unique<EasgdAsync>(o, world);
}
std::unique_ptr<Strategy> make_eamsgd_async(const Options& o, int world) {
  return std::make_unique<EasgdAsync>(o, world);
}

}  // namespace skein::optim
