// CoCoD-SGD: the mean of the models of a round ago arrives, and each worker adds its own progress since then.
// Shen, Xu, Liu, Liang & Cheng, IJCAI 2019, Algorithm 1.
//
//   s  own snapshot, taken at the last synchronization      c  mean of all snapshots, made during the round
#include "engine/vectors/vec.h"
#include "optim/periodic/periodic.h"

namespace skein::optim {
namespace {

class CocodSgd final : public Overlapped {
 public:
  explicit CocodSgd(const Options& o) : Overlapped(o) {}

  Tensor iterate(Worker& me, int64_t k) override {
    flight_.carry_on(me);
    const Tensor loss = me.gradient();
    if (!round_.ends(k)) {
      me.local_step(me.x);  // x_i <- x_i - eta u_i
      return loss;
    }
    const Means c = flight_.land();
    me.local_step(me.x);
    if (c.x) {
      scale(flight_.own(), -1.f);
      axpy(flight_.own(), 1.f, c.x);
      axpy(me.x, 1.f, flight_.own());  // x_i <- x_i + (c - s_i)
      c.give_buffers(me);
    }
    flight_.set_out(me, me.x);  // s_i <- x_i
    return loss;
  }
};

}  // namespace

std::unique_ptr<Strategy> make_cocod(const Options& o, int) { return std::make_unique<CocodSgd>(o); }

}  // namespace skein::optim
