// A decorator: the algorithm's own step, then, where one is due, the exact mean.
#include "optim/gossip/exact_average.h"

#include <algorithm>
#include <utility>

#include "comm/communicator/patience.h"
#include "comm/communicator/words.h"
#include "optim/whole_step.h"

namespace skein::optim {
namespace {

class ExactAverage final : public Strategy, public InRounds {
 public:
  ExactAverage(std::unique_ptr<Gossiping> inner, int64_t every, bool at_end, bool asynchronous)
      : inner_(std::move(inner)), every_(every), at_end_(at_end), asynchronous_(asynchronous) {}

  void start(Worker& me) override { inner_->start(me); }
  void visit(Archive& a) override { inner_->visit(a); }
  Shared shared() override { return shared_states(*inner_); }
  Tensor contribution(Worker& me) override { return inner_->contribution(me); }
  double share_of_model(const Worker& me) const override { return inner_->share_of_model(me); }
  void write_model(Worker& me, const Tensor& y) override { inner_->write_model(me, y); }

  Tensor iterate(Worker& me, int64_t k) override {
    const bool due = every_ > 0 && (k + 1) % every_ == 0;
    CHECK(!due || !due_, "a step before the exact average that was due");
    const Tensor loss = inner_->iterate(me, k);
    if (due && asynchronous_) {
      due_ = true;
      meet(me, kAverage);
    } else if (due) {
      inner_->average(me);
    }
    return loss;
  }

  void settle(Worker& me) override {
    if (asynchronous_ && every_ > 0)
      meet(me, kSettle);
    else
      inner_->settle(me);
  }

  void finish(Worker& me) override {
    inner_->finish(me);
    if (at_end_) inner_->average(me);
  }

 private:
  enum Purpose { kAverage, kSettle };

  // Workers can come for different purposes: one may be asked to stop while others are ahead, at a step where
  // an average is due. Those then return to their caller without an average, and hear there that they are to
  // stop; the average is taken later, where all have come to that step. In each round all workers hear what
  // the others came for, so that they agree.
  void meet(Worker& me, Purpose mine) {
    const comm::Patience patience(me.comm);  // as long as the slowest worker takes
    for (bool all_settle = false; !all_settle;) {
      inner_->settle(me);
      bool all_due = all_settle = true;
      for (const auto& other : comm::gather_numbers(me.comm, {double(mine), double(due_)})) {
        all_settle = all_settle && other[0] == double(kSettle);
        all_due = all_due && other[1] != 0;
      }
      if (all_due) inner_->average(me), due_ = false;
      if (mine == kAverage) break;
    }
  }

  const std::unique_ptr<Gossiping> inner_;
  const int64_t every_;
  const bool at_end_, asynchronous_;
  bool due_ = false;  // never in a checkpoint: where all are at one step, all or none are due
};

}  // namespace

std::unique_ptr<Strategy> with_exact_average(std::unique_ptr<Gossiping> inner, const Options& o, int world,
                                             bool asynchronous) {
  const int64_t every = o.integer("exact-every", 0, 0);
  const bool at_end = o.flag("final-average", true);
  if (world == 1 || (every == 0 && !at_end)) return inner;
  return std::make_unique<ExactAverage>(std::move(inner), every, at_end, asynchronous);
}

}  // namespace skein::optim
