// Local SGD: tau steps of one's own, then the mean of the models.  Stich, ICLR 2019, Algorithm 1.
#include "engine/vec.h"
#include "optim/gossip.h"
#include "optim/snapshot.h"
#include "optim/strategy.h"

namespace skein::optim {
namespace {

class LocalSgd final : public Strategy {
 public:
  LocalSgd(const Options& o, int world)
      : tau_(o.integer("tau", 4)), world_(world), mixes_(buffer_policy(o) == BufferPolicy::kMix) {
    if (tau_ < 1)
      throw BadOption(text("--tau ", tau_, ": at least one local step between averages is needed"));
  }

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    if (world_ == 1 || (k + 1) % tau_ != 0) {
      me.local_step(me.x);  // x_i <- x_i - eta u_i
      return loss;
    }
    Undo undo(before_, [&](Archive& a) { a("x", me.x), me.rule.visit(a); });
    me.local_step(me.x);
    average(*me.comm, me.x);  // x_i <- mean x; momenta stay local
    if (mixes_ && me.buffers.size() > 0) average(*me.comm, me.buffers);
    undo.keep();
    return loss;
  }

 private:
  void average(comm::Communicator& comm, const Tensor& x) {
    comm.all_reduce(x).wait();
    scale(x, 1.0 / world_);
  }

  const int64_t tau_;
  const int world_;
  const bool mixes_;
  Snapshot before_;
};

}  // namespace

std::unique_ptr<Strategy> make_local_sgd(const Options& o, int world) {
  return std::make_unique<LocalSgd>(o, world);
}

}  // namespace skein::optim
