// Communicator: its collectives. Broadcast is a binomial tree, all-reduce is in all_reduce.cc.
#include <algorithm>

#include "comm/communicator/coding.h"
#include "comm/communicator/device_way.h"
#include "comm/communicator/state.h"

namespace skein::comm {
namespace {

constexpr int64_t kBroadcastPart = kPieceBytes;  // elements that travel down the tree at a time: 4 MB

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

// The rank d after the root hears from the one whose d lacks the highest bit. In segments, so that a large
// vector flows through the tree.
void Communicator::broadcast(const Tensor& x, Rank root) {
  State& s = *state_;
  const Rank n = size();
  CHECK(root >= 0 && root < n, root, n);
  if (n == 1) return;
  if (s.devices && s.devices->takes(x))
    return s.devices->broadcast(*this, x, root, [&s](auto began) { s.receiver.nap_for_device(began); });
  const int64_t sequence = s.next_sequence();
  if (Collectives* const whole = s.group.transport.collectives(n))
    return s.complete(joint_broadcast(s.group, *whole, sequence, x, root));
  const uint32_t layout = layout_of(x.size(), x.dtype(), kBroadcast + (uint32_t(root) << 8));
  const Rank d = (rank() - root + n) % n;
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
      const Message m =
          s.receiver.wait(s.group.key(parent, kFirst, sequence + i), {layout, part.size(), x.dtype()});
      if (part.size() > 0) s.group.staging.bring(part, m.payload);
    }
    if (!children.empty()) s.sender.send(children, kFirst, sequence + i, part, layout);
  }
}

std::vector<Tensor> Communicator::gather(const Tensor& x, Rank root) {
  State& s = *state_;
  CHECK(root >= 0 && root < size(), root, size());
  const int64_t sequence = s.next_sequence();
  if (Collectives* const whole = s.group.transport.collectives(size())) {
    std::vector<Tensor> all;
    s.complete(joint_gather(s.group, *whole, sequence, x, root, rank() == root ? &all : nullptr));
    return all;
  }
  const uint32_t layout = layout_of(0, x.dtype(), kGather + (uint32_t(root) << 8));  // sizes may differ
  if (rank() != root) {
    s.sender.send({{root, 1, 1}}, kFirst, sequence, x, layout);
    return {};
  }
  const Expected expected(layout, -1, x.dtype());
  Staging& staging = s.group.staging;
  const Staging::Landing own = staging.down(x);
  own.ready.sync();
  std::vector<Tensor> all;
  for (Rank r = 0; r < size(); ++r)
    if (r == rank())
      all.push_back(x.device().is_host() ? x.clone() : own.host);
    else
      all.push_back(
          staging.beside(kCpu, s.receiver.wait(s.group.key(r, kFirst, sequence), expected).payload));
  return all;
}

// Dissemination: after round i every rank has heard, directly or not, from the 2^(i+1) - 1 ranks before it.
void Communicator::barrier() {
  State& s = *state_;
  const Rank n = size(), me = rank();
  const int64_t sequence = s.next_sequence();
  if (Collectives* const whole = s.group.transport.collectives(n))
    return s.complete(joint_barrier(s.group, *whole, sequence));
  const uint32_t layout = layout_of(0, kU8, kBarrier);
  int round = 0;
  for (Rank d = 1; d < n; d <<= 1, ++round) {
    const Tag tag = round == 0 ? kFirst : kSecond;
    s.sender.send({{Rank((me + d) % n), 1, 1}}, tag, sequence + round, nothing(), layout,
                  Sender::Memory::kLent);
    s.receiver.wait(s.group.key((me - d + n) % n, tag, sequence + round), {layout, 0, kU8});
  }
}

std::string Communicator::use_devices(DeviceWish wish, DeviceOffer mine) {
  const auto [said, group] = agree(*this, wish, mine);
  if (group) state_->devices = std::make_shared<DeviceWay>(std::move(mine));
  return said;
}

}  // namespace skein::comm
