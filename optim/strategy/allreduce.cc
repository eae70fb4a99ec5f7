// Synchronous data parallelism: the mean of the gradients, then one step by everybody.
//
//   g   gradient of my part of the global batch          n_i / N   my share of its samples
#include "comm/communicator/coding.h"
#include "comm/communicator/communicator.h"
#include "engine/vectors/vec.h"
#include "optim/periodic/two_level.h"
#include "optim/strategies.h"

namespace skein::optim {
namespace {

class AllReduce final : public Strategy {
 public:
  explicit AllReduce(const Options& o)
      : nodes_(parse_hierarchy(o.word("hierarchy", "none"))), codec_(codec_of(o)) {
    if (codec_ && nodes_.kind != Nodes::kNone)
      throw BadOption(
          "--wire " + o.word("wire", "") +
          " with --hierarchy: a sum in two levels would be rounded four times; leave one of them out");
  }

  void start(Worker& me) override {
    if (codec_) residual_ = Tensor::zeros(me.g.shape(), kF32, me.g.device());
    if (nodes_.kind != Nodes::kNone) two_level_ = std::make_unique<TwoLevelSum>(me.comm, nodes_);
  }

  Tensor iterate(Worker& me, int64_t) override {
    comm::Pendings sums;
    const auto add = [&](const Tensor& slice) {  // while backward still runs
      if (codec_) return void(sums += coded(me, slice));
      scale(slice, me.share);
      if (two_level_)
        two_level_->begin(slice);
      else
        sums += me.comm.all_reduce(slice);
    };
    const auto wait = [&] {
      sums.wait();
      if (two_level_) two_level_->wait();
    };
    const Tensor loss = me.gradient({add, wait});  // g = sum_i (n_i / N) g_i
    me.rule.step(me.x, me.g, me.lr);               // x <- x - eta u(g)
    return loss;
  }

  void visit(Archive& a) override {
    if (residual_) a("residual", residual_);
  }

 private:
  // The mean of n (n_i / N) g_i. Scaled so, residuals have the size of one worker's gradient for any
  // number of workers.
  comm::Pending coded(Worker& me, const Tensor& slice) const {
    scale(slice, me.share * me.comm.size());
    return me.comm.mean(slice, {codec_, residual_.view(slice.shape(), slice.offset() - me.g.offset())});
  }

  const Nodes nodes_;
  const Codec codec_;
  std::unique_ptr<TwoLevelSum> two_level_;
  Tensor residual_;  // with a codec: the part of g that has not been sent yet
};

}  // namespace

std::unique_ptr<Strategy> make_allreduce(const Options& o, int world) {
  auto sums = std::make_unique<AllReduce>(o);  // refuses what cannot be
  if (world == 1) return make_sgd(o, world);   // which takes the gradient whole
  return sums;
}

}  // namespace skein::optim
