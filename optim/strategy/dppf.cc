// DPPF: workers are pulled towards their mean and pushed away from it, so that they keep the width of a flat
// valley between them. Pull-Push Force: Dimlioglu & Choromanska, 2025.
//
//   x_i    model of worker i      alpha   strength of the pull
//   xbar   their mean             lambda  of the push; they settle where |x_i - xbar| is lambda / alpha
#include "engine/vectors/vec.h"
#include "optim/periodic/periodic.h"

namespace skein::optim {
namespace {

class Dppf final : public Periodic {
 public:
  explicit Dppf(const Options& o)
      : Periodic(o), alpha_(o.number("alpha", 0.5, 0, 1)), lambda_(o.number("push", 0.1, 0)) {}

  void start(Worker& me) override { round_.start(me), apart_ = me.x.clone(); }

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    const Tensor mean = round_.step(me, k);  // x_i <- x_i - eta u_i
    if (!mean) return loss;
    copy(apart_, me.x), axpy(apart_, -1.f, mean);
    const double distance = norm(apart_);  // 0: there is no direction to push in
    // x_i <- x_i + (alpha - lambda / |x_i - xbar|) (xbar - x_i)
    lerp(me.x, mean, distance > 0 ? alpha_ - lambda_ / distance : 0);
    return loss;
  }

 private:
  const double alpha_, lambda_;
  Tensor apart_;  // scratch
};

}  // namespace

std::unique_ptr<Strategy> make_dppf(const Options& o, int) { return std::make_unique<Dppf>(o); }

}  // namespace skein::optim
