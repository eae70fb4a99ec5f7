// Synchronous data parallelism: the mean of the gradients, then one step by everybody.
//
//   g   gradient of my part of the global batch          n_i / N   my share of its samples
#include "comm/communicator/communicator.h"
#include "engine/vectors/clip.h"
#include "engine/vectors/loss_scale.h"
#include "engine/vectors/vec.h"
#include "optim/periodic/two_level.h"
#include "optim/strategy.h"

namespace skein::optim {

std::unique_ptr<Strategy> make_sgd(const Options&, int world);

namespace {

class AllReduce final : public Strategy {
 public:
  explicit AllReduce(const Options& o)
      : nodes_(parse_hierarchy(o.word("hierarchy", "none"))), longest_(o.number("clip-norm", 0)) {}

  void start(Worker& me) override {
    if (nodes_.kind != Nodes::kNone) two_level_ = std::make_unique<TwoLevelSum>(me.comm, nodes_);
  }

  Tensor iterate(Worker& me, int64_t) override {
    const double share = double(me.samples) / double(me.global_samples);
    int64_t reduced = 0;
    comm::Pendings sums;
    const Tensor loss = me.gradient([&](Tensor slice) {  // while backward still runs:
      scale(slice, share);                               //   g <- sum_i (n_i / N) g_i
      if (two_level_)
        two_level_->begin(slice);
      else
        sums += me.comm.all_reduce(slice);
      reduced += slice.size();
    });
    CHECK(reduced == me.g.size(), "slices do not cover the gradient", reduced, me.g.size());
    sums.wait();
    if (two_level_) two_level_->wait();
    if (me.scale) me.scale->judge(me.g);             // one's infinity is in everybody's sum
    if (longest_ > 0) clip_by_norm(me.g, longest_);  // of the mean
    me.rule.step(me.x, me.g, me.lr);                 // x <- x - eta u(g)
    return loss;
  }

 private:
  const Nodes nodes_;
  const double longest_;  // --clip-norm
  std::unique_ptr<TwoLevelSum> two_level_;
};

}  // namespace

std::unique_ptr<Strategy> make_allreduce(const Options& o, int world) {
  auto sums = std::make_unique<AllReduce>(o);  // refuses what cannot be
  if (world == 1) return make_sgd(o, world);   // which takes the gradient whole
  return sums;
}

}  // namespace skein::optim
