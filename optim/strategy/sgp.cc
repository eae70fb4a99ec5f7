// Stochastic Gradient Push.  Assran, Loizou, Ballas & Rabbat, ICML 2019, Algorithm 1.
//
//   X   biased parameters, the push-sum numerator        w   push-sum weight, starts at 1
//   z   X / w, the de-biased model; lives in me.x, where gradients are taken
#include "comm/communicator/words.h"
#include "engine/vectors/vec.h"
#include "optim/gossip/exact_average.h"
#include "optim/gossip/gossip.h"

namespace skein::optim {
namespace {

class Sgp final : public Gossiping {
 public:
  Sgp(const Options& o, int world) : graph_(o, world, "exponential", 1), buffers_(o) {}

  void start(Worker& me) override { x_ = me.x.clone(); }

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();  // g = grad F(z)
    me.local_step(x_);                  // X <- X - eta u, decay at z

    const comm::Mix p = graph_.at(me, k);  // column and row i of P(k)
    give(me.comm, p, kShare, k, x_, w_);   // out-peers get their share of (X, w)
    buffers_.give(me, p, k, w_);
    const auto shares = take_shares(me.comm, p, kShare, k, x_);

    w_ = p.self * w_;
    for (const comm::Message& m : shares) w_ += m.weight;  // w <- sum_j p_ij w_j
    // X <- sum_j p_ij X_j, z = X / w
    combine(me.comm, {.y = x_, .x = x_, .self = p.self, .z = me.x, .by = 1 / w_}, p, shares);
    buffers_.take_and_combine(me, p, k, w_);
    return loss;
  }

  void average(Worker& me) override {  // X <- mean X, w <- mean w
    buffers_.average(me, w_);
    me.comm.mean(x_).wait();
    double sum = 0;
    for (const auto& other : comm::gather_numbers(me.comm, {w_})) sum += other[0];
    w_ = sum / me.comm.size();
    scaled_copy(me.x, 1 / w_, x_);
  }

  void visit(Archive& a) override { a("x", x_), a("w", w_); }
  // The sum of all w is n, so the mean of X is the mean of all there is.
  Tensor contribution(Worker&) override { return x_; }

 private:
  static constexpr comm::Tag kShare = 1;
  Graph graph_;
  BufferGossip buffers_;
  Tensor x_;
  double w_ = 1;
};

}  // namespace

std::unique_ptr<Strategy> make_sgp(const Options& o, int world) {
  return with_exact_average(std::make_unique<Sgp>(o, world), o, world);
}

}  // namespace skein::optim
