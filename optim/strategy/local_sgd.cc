// Local SGD: tau steps by each worker alone, then the mean of the models.  Stich, ICLR 2019, Algorithm 1.
// Post-local SGD: gradients are averaged at first.  Lin, Stich, Patel & Jaggi, ICLR 2020.
//
//   x_i  model of worker i      tau  local steps in a round      S  step at which rounds begin
#include "engine/vectors/vec.h"
#include "optim/periodic/periodic.h"
#include "optim/strategies.h"

namespace skein::optim {
namespace {

class LocalSgd final : public Periodic {
 public:
  explicit LocalSgd(const Options& o) : Periodic(o) {}

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    const Tensor mean = round_.step(me, k);  // x_i <- x_i - eta u_i
    if (mean) copy(me.x, mean);              // x_i <- mean x; momenta stay local
    return loss;
  }
};

class PostLocalSgd final : public Strategy, public InRounds {
 public:
  PostLocalSgd(const Options& o, int world)
      : switch_(o.integer("switch-step", 0, 0)), together_(make_allreduce(o, world)), apart_(o) {}

  void start(Worker& me) override { together_->start(me), apart_.start(me); }

  Tensor iterate(Worker& me, int64_t k) override {
    if (k < switch_) return together_->iterate(me, k);
    if (k == switch_) apart_.start(me);  // a codec codes what is learned from here on
    return apart_.iterate(me, k - switch_);
  }

  Shared shared() override {
    return {.is = [this, apart = apart_.shared()](int64_t k) { return k < switch_ || apart.is(k - switch_); },
            .arrived = {}};
  }
  void visit(Archive& a) override {
    Under together(a, "together."), apart(a, "apart.");
    together_->visit(together), apart_.visit(apart);
  }

 private:
  const int64_t switch_;
  const std::unique_ptr<Strategy> together_;
  LocalSgd apart_;
};

}  // namespace

std::unique_ptr<Strategy> make_local_sgd(const Options& o, int) { return std::make_unique<LocalSgd>(o); }
std::unique_ptr<Strategy> make_post_local(const Options& o, int world) {
  return std::make_unique<PostLocalSgd>(o, world);
}

}  // namespace skein::optim
