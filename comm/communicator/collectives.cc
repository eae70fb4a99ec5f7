// Communicator: its collectives. Broadcast is a binomial tree, all-reduce is in all_reduce.cc.
#include <algorithm>

#include "comm/communicator/coding.h"
#include "comm/communicator/device_way.h"
#include "comm/communicator/state.h"

namespace skein::comm {
namespace {

constexpr int64_t kBroadcastPart = kPieceBytes;  // elements that travel down the tree at a time: 4 MB

// The rank d after the root hears from the one whose d lacks the highest bit. In segments, so that a large
// vector flows through the tree.
void broadcast_down_a_tree(Group& g, Sender& sender, Receiver& receiver, int64_t sequence, const Tensor& x,
                           Rank root) {
  const Rank n = g.size();
  const uint32_t layout = layout_of(x.size(), x.dtype(), kBroadcast + (uint32_t(root) << 8));
  const Rank d = (g.rank - root + n) % n;
  Rank bit = 1;
  while (bit <= d) bit <<= 1;
  const Rank parent = (d - (bit >> 1) + root) % n;
  std::vector<Share> children;
  for (; d + bit < n; bit <<= 1) children.push_back({Rank((d + bit + root) % n), 1, 1});
  const Tensor all = x.view({x.size()});
  const int64_t step = kBroadcastPart, segments = std::max<int64_t>(1, (x.size() + step - 1) / step);
  for (int64_t i = 0; i < segments; ++i) {
    const Tensor part = all.view({std::min(step, x.size() - i * step)}, i * step);
    if (d != 0) {
      const Message m = receiver.wait(g.key(parent, kFirst, sequence + i), {layout, part.size(), x.dtype()});
      if (part.size() > 0) g.staging.bring(part, m.payload);
    }
    if (!children.empty()) sender.send(children, kFirst, sequence + i, part, layout);
  }
}

// All of all ranks, in rank order, on the device of x.
std::vector<Tensor> exchange_all(Group& g, Sender& sender, Receiver& receiver, int64_t sequence,
                                 const Tensor& x) {
  const uint32_t layout = layout_of(x.size(), x.dtype(), kAllGather);
  if (g.size() > 1) sender.send(all_but(g.rank, g.size()), kFirst, sequence, x, layout);
  std::vector<Tensor> all;
  for (Rank r = 0; r < g.size(); ++r)
    if (r == g.rank) {
      all.push_back(x);
    } else {
      const Message m = receiver.wait(g.key(r, kFirst, sequence), {layout, x.size(), x.dtype()});
      all.push_back(g.staging.beside(x.device(), m.payload));
    }
  return all;
}

std::vector<Tensor> gather_at(Rank root, Group& g, Sender& sender, Receiver& receiver, int64_t sequence,
                              const Tensor& x) {
  const uint32_t layout = layout_of(0, x.dtype(), kGather + (uint32_t(root) << 8));  // sizes may differ
  if (g.rank != root) {
    sender.send({{root, 1, 1}}, kFirst, sequence, x, layout);
    return {};
  }
  const Expected expected(layout, -1, x.dtype());
  const Staging::Landing own = g.staging.down(x);
  own.ready.sync();
  std::vector<Tensor> all;
  for (Rank r = 0; r < g.size(); ++r)
    if (r == g.rank)
      all.push_back(x.device().is_host() ? x.clone() : own.host);
    else
      all.push_back(g.staging.beside(kCpu, receiver.wait(g.key(r, kFirst, sequence), expected).payload));
  return all;
}

// Dissemination: after round i every rank has heard, directly or not, from the 2^(i+1) - 1 ranks before it.
void disseminate(Group& g, Sender& sender, Receiver& receiver, int64_t sequence) {
  const Rank n = g.size(), me = g.rank;
  const uint32_t layout = layout_of(0, kU8, kBarrier);
  int round = 0;
  for (Rank d = 1; d < n; d <<= 1, ++round) {
    const Tag tag = round == 0 ? kFirst : kSecond;
    sender.send({{Rank((me + d) % n), 1, 1}}, tag, sequence + round, nothing(), layout,
                Sender::Memory::kLent);
    receiver.wait(g.key((me - d + n) % n, tag, sequence + round), {layout, 0, kU8});
  }
}

}  // namespace

Pending Communicator::State::sum(Communicator& c, const Tensor& x, double factor, const Coding& coding) {
  CHECK(x && x.dtype() != kU8, "all_reduce sums f32, bf16, f16, i32 and i64");
  if (group.size() == 1) return {};
  const double began = group.now();
  std::shared_ptr<Pending::Op> op;
  if (coding)
    op = coded_reduction(group, sender, receiver, next_sequence(), x, coding);
  else if (devices && devices->takes(x))
    op = devices->reduction(c, x);
  else if (Collectives* const whole = group.transport.collectives(group.size()))
    op = joint_reduction(group, *whole, next_sequence(), x);
  else
    op = reduction(group, sender, receiver, next_sequence(), x);
  if (factor != 1) op->sum = x, op->factor = factor;
  return receiver.begin(std::move(op), began);
}

void Communicator::State::complete(std::shared_ptr<Pending::Op> op) {
  receiver.begin(std::move(op), group.now()).wait();
}

Pending Communicator::all_reduce(const Tensor& x) { return state_->sum(*this, x, 1, {}); }
Pending Communicator::mean(const Tensor& x, const Coding& c) {
  return state_->sum(*this, x, 1.0 / size(), c);
}

void Communicator::broadcast(const Tensor& x, Rank root) {
  State& s = *state_;
  CHECK(root >= 0 && root < size(), root, size());
  if (size() == 1) return;
  if (s.devices && s.devices->takes(x))
    return s.devices->broadcast(*this, x, root, [&s](auto began) { s.receiver.nap_for_device(began); });
  const int64_t sequence = s.next_sequence();
  if (Collectives* const whole = s.group.transport.collectives(size()))
    return s.complete(joint_broadcast(s.group, *whole, sequence, x, root));
  broadcast_down_a_tree(s.group, s.sender, s.receiver, sequence, x, root);
}

Tensor Communicator::combine(const Tensor& x, const Combination& f) {
  State& s = *state_;
  CHECK(x.dtype() != kF32 || options().wire == kF32, "the wire rounds", x.dtype());
  const int64_t sequence = s.next_sequence();
  Collectives* const whole = s.group.transport.collectives(size());
  if (!whole) return f(exchange_all(s.group, s.sender, s.receiver, sequence, x));
  Tensor result;
  s.complete(joint_combination(s.group, *whole, sequence, x, f, result));
  return result;
}

std::vector<Tensor> Communicator::gather(const Tensor& x, Rank root) {
  State& s = *state_;
  CHECK(root >= 0 && root < size(), root, size());
  const int64_t sequence = s.next_sequence();
  Collectives* const whole = s.group.transport.collectives(size());
  if (!whole) return gather_at(root, s.group, s.sender, s.receiver, sequence, x);
  std::vector<Tensor> all;
  s.complete(joint_gather(s.group, *whole, sequence, x, root, rank() == root ? &all : nullptr));
  return all;
}

void Communicator::barrier() {
  State& s = *state_;
  const int64_t sequence = s.next_sequence();
  if (Collectives* const whole = s.group.transport.collectives(size()))
    return s.complete(joint_barrier(s.group, *whole, sequence));
  disseminate(s.group, s.sender, s.receiver, sequence);
}

std::string Communicator::use_devices(DeviceWish wish, DeviceOffer mine) {
  const auto [said, group] = agree(*this, wish, mine);
  if (group) state_->devices = std::make_shared<DeviceWay>(std::move(mine));
  return said;
}

}  // namespace skein::comm
