// Synchronous data parallelism: the mean of the gradients, then one step by everybody.
//
//   g   gradient of my part of the global batch          n_i / N   my share of its samples
#include "comm/communicator.h"
#include "engine/vec.h"
#include "optim/strategy.h"

namespace skein::optim {
namespace {

class AllReduce final : public Strategy {
 public:
  Tensor iterate(Worker& me, int64_t) override {
    if (!me.comm) return alone(me);
    const double share = double(me.samples) / double(me.global_samples);
    int64_t reduced = 0;
    comm::Pendings sums;
    const Tensor loss = me.gradient([&](Tensor slice) {  // while backward still runs:
      scale(slice, share);                               //   g <- sum_i (n_i / N) g_i
      sums += me.comm->all_reduce(slice);
      reduced += slice.size();
    });
    CHECK(reduced == me.g.size(), "slices do not cover the gradient", reduced, me.g.size());
    sums.wait();
    me.rule.step(me.x, me.g, me.lr);  // x <- x - eta u(g)
    return loss;
  }

 private:
  Tensor alone(Worker& me) {
    const Tensor loss = me.gradient();
    me.rule.step(me.x, me.g, me.lr);
    return loss;
  }
};

}  // namespace

std::unique_ptr<Strategy> make_allreduce(const Options&, int) { return std::make_unique<AllReduce>(); }

}  // namespace skein::optim
