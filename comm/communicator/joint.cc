// Collectives that the transport carries out as a whole: each member brings what it has and hears when
// all is there.
#include "comm/communicator/state.h"
#include "comm/communicator/sum.h"

namespace skein::comm {
namespace {

using What = Collectives::Kind;
using Call = Collectives::Call;

class Joint final : public Pending::Op {
 public:
  // `take` gets what comes of it, on the member's own thread.
  Joint(Group& g, Collectives& c, const char* called, const Call& call, const Collectives::Combine& combine,
        std::function<void(const std::vector<Tensor>&)> take)
      : g_(g), result_(c.begin(call, combine)), take_(std::move(take)) {
    name = called;
    bytes = int64_t(call.bytes);
    missing = {call.communicator, kAnyone, kFirst, call.sequence};
  }
  void advance() override {
    if (done || !result_->there) return;
    if (take_) take_(result_->all);
    landed = g_.now();
    done = true;
  }

 private:
  Group& g_;
  const std::shared_ptr<const Collectives::Result> result_;
  const std::function<void(const std::vector<Tensor>&)> take_;
};

Call call_of(Group& g, What kind, int64_t sequence, const Tensor& x, Rank root, uint32_t layout) {
  const double wire = x.dtype() == kF32 ? double(size_of(g.options.wire)) : double(size_of(x.dtype()));
  return {kind,   g.id, sequence, g.members,
          g.rank, root, x,        double(x.size()) * wire * g.transport.stands_for(x.dtype(), x.size()),
          layout};
}

Tensor as_by(DType wire, const Tensor& x) {
  if (x.dtype() != kF32 || wire == kF32) return x;
  Tensor there(x.shape(), wire), back(x.shape());
  copy(there, x), copy(back, there);
  return back;
}

// The bits of messages: all numbers but the owner's own are rounded on their way to it, and sums on theirs.
Tensor sum_of(const std::vector<Tensor>& all, DType wire, bool small, int64_t segment) {
  const int64_t n = int64_t(all.size()), size = all[0].size();
  Tensor sum(all[0].shape(), all[0].dtype());
  if (all[0].dtype() != kF32 || wire == kF32) return sum_in_order({sum}, all), sum;
  std::vector<Tensor> rounded;
  for (const Tensor& x : all) rounded.push_back(as_by(wire, x));
  if (small) return sum_in_order({sum}, rounded), sum;
  for (int64_t begin = 0; begin < size; begin += segment * n) {
    const int64_t length = std::min(segment * n, size - begin);
    for (int64_t owner = 0; owner < n; ++owner) {
      const int64_t lo = begin + length * owner / n, hi = begin + length * (owner + 1) / n;
      if (hi == lo) continue;
      std::vector<Tensor> shares;
      for (int64_t r = 0; r < n; ++r)
        shares.push_back((r == owner ? all : rounded)[size_t(r)].view({hi - lo}, lo));
      sum_in_order({sum.view({hi - lo}, lo)}, shares);
    }
  }
  return as_by(wire, sum);
}

}  // namespace

std::shared_ptr<Pending::Op> joint_reduction(Group& g, Collectives& c, int64_t sequence, const Tensor& x) {
  const Tensor flat = x.view({x.size()});
  const ReducePlan plan = reduce_plan(g, flat);
  Call call = call_of(g, What::kSum, sequence, flat, 0, layout_of(x.size(), x.dtype(), kReducePlace));
  call.one_hop = plan.small;
  g.meter->moved(int64_t((plan.small ? double(g.size() - 1) : 2 - 2.0 / g.size()) * call.bytes));
  return std::make_shared<Joint>(
      g, c, "all-reduce", call,
      [wire = g.options.wire, plan](const std::vector<Tensor>& all) {
        return std::vector<Tensor>{sum_of(all, wire, plan.small, plan.segment)};
      },
      [flat](const std::vector<Tensor>& sum) {
        copy_bytes(flat, sum[0]);
        flat.storage()->written();
      });
}

std::shared_ptr<Pending::Op> joint_combination(Group& g, Collectives& c, int64_t sequence, const Tensor& x,
                                               const Communicator::Combination& f, Tensor& result) {
  const Call call = call_of(g, What::kAllGather, sequence, x, 0, layout_of(x.size(), x.dtype(), kAllGather));
  g.meter->moved(int64_t(double(g.size() - 1) * call.bytes));
  return std::make_shared<Joint>(
      g, c, "all-gather", call, [f](const std::vector<Tensor>& all) { return std::vector<Tensor>{f(all)}; },
      [&result](const std::vector<Tensor>& combined) { result = combined[0]; });
}

std::shared_ptr<Pending::Op> joint_broadcast(Group& g, Collectives& c, int64_t sequence, const Tensor& x,
                                             Rank root) {
  const uint32_t layout = layout_of(x.size(), x.dtype(), kBroadcast + (uint32_t(root) << 8));
  const Tensor flat = x.view({x.size()});
  const Call call =
      call_of(g, What::kBroadcast, sequence, g.rank == root ? flat.clone() : flat, root, layout);
  if (g.rank == root) g.meter->moved(int64_t(call.bytes));
  return std::make_shared<Joint>(
      g, c, "broadcast", call,
      [wire = g.options.wire, root](const std::vector<Tensor>& all) {
        return std::vector<Tensor>{as_by(wire, all[size_t(root)])};
      },
      [flat, receives = g.rank != root](const std::vector<Tensor>& sent) {
        if (receives && flat.size() > 0) copy_bytes(flat, sent[0]);
      });
}

std::shared_ptr<Pending::Op> joint_barrier(Group& g, Collectives& c, int64_t sequence) {
  const Call call = call_of(g, What::kBarrier, sequence, nothing(), 0, layout_of(0, kU8, kBarrier));
  return std::make_shared<Joint>(
      g, c, "barrier", call, [](const std::vector<Tensor>&) { return std::vector<Tensor>(); }, nullptr);
}

std::shared_ptr<Pending::Op> joint_gather(Group& g, Collectives& c, int64_t sequence, const Tensor& x,
                                          Rank root, std::vector<Tensor>* all) {
  const uint32_t layout = layout_of(0, x.dtype(), kGather + (uint32_t(root) << 8));
  const Call call = call_of(g, What::kGather, sequence, x.view({x.size()}).clone(), root, layout);
  if (!all) g.meter->moved(int64_t(call.bytes));
  return std::make_shared<Joint>(
      g, c, "gather", call,
      [wire = g.options.wire, root](const std::vector<Tensor>& brought) {
        std::vector<Tensor> as_traveled;
        for (size_t r = 0; r < brought.size(); ++r)
          as_traveled.push_back(r == size_t(root) ? brought[r] : as_by(wire, brought[r]));
        return as_traveled;
      },
      [all](const std::vector<Tensor>& gathered) {
        if (all) *all = gathered;
      });
}

}  // namespace skein::comm
