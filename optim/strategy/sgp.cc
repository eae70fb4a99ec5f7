// Stochastic Gradient Push.  Assran, Loizou, Ballas & Rabbat, ICML 2019, Algorithm 1.
//
//   X   biased parameters, the push-sum numerator        w   push-sum weight, starts at 1
//   z   X / w, the de-biased model; lives in me.x, where gradients are taken
#include "optim/gossip/exact_average.h"
#include "optim/gossip/gossip.h"

namespace skein::optim {
namespace {

class Sgp final : public Gossiping {  // a Strategy that can also take the exact mean, by average()
 public:
  Sgp(const Options& o, int world) : gossip_(o, world, "exponential", 1) {}

  void start(Worker& me) override { x_ = me.x.clone(), gossip_.start(me, x_); }

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();  // g = grad F(z)
    me.local_step(x_);                  // X <- X - eta u, decay at z
    gossip_.give(me, k, x_, w_);        // out-peers get their share of (X, w)
    gossip_.take(me, k, x_, w_, me.x);  // (X, w) <- sum_j p_ij (X_j, w_j), z = X / w
    return loss;
  }

  void average(Worker& me) override { gossip_.average(me, x_, w_, me.x); }  // (X, w) <- mean (X, w)
  void visit(Archive& a) override { a("x", x_), a("w", w_), gossip_.visit(a); }
  // The sum of all w is n, so the mean of X is the mean of all there is.
  Tensor contribution(Worker&) override { return x_; }

 private:
  Gossip gossip_;
  Tensor x_;
  double w_ = 1;
};

}  // namespace

std::unique_ptr<Strategy> make_sgp(const Options& o, int world) {
  return with_exact_average<Sgp>(o, world);  // --exact-every, --final-average
}

}  // namespace skein::optim
