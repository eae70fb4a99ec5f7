// Collectives: broadcast by a binomial tree, gather, barrier, windows, the average of a pair.
#include <algorithm>

#include "comm/communicator/pending.h"
#include "comm/communicator/sum.h"

namespace skein::comm {
namespace {

constexpr int64_t kBroadcastPart = kPieceBytes;  // elements that travel down the tree at a time: 4 MB

}  // namespace

// Binomial tree: the rank d after the root hears from d without its highest bit. In segments, so that a large
// vector flows through the tree.
void Communicator::broadcast(const Tensor& x, Rank root) {
  CHECK(root >= 0 && root < size(), root, size());
  if (size() == 1 || device_broadcast(x, root)) return;
  const int64_t sequence = next_sequence();
  const uint32_t layout = layout_of(x.size(), x.dtype(), kBroadcast + (uint32_t(root) << 8));
  const Rank n = size(), d = (rank_ - root + n) % n;
  Rank bit = 1;
  while (bit <= d) bit <<= 1;
  const Rank parent = (d - (bit >> 1) + root) % n;
  std::vector<Share> children;
  for (; d + bit < n; bit <<= 1) children.push_back({Rank((d + bit + root) % n), 1, 1});
  const Tensor all = x.view({x.size()});
  const int64_t step = kBroadcastPart, segments = std::max<int64_t>(1, (x.size() + step - 1) / step);
  for (int64_t s = 0; s < segments; ++s) {
    const Tensor part = all.view({std::min(step, x.size() - s * step)}, s * step);
    if (d != 0) {
      const Message m = wait_for(key(parent, kFirst, sequence + s), layout);
      if (part.size() > 0) staging_->bring(part, m.payload);
    }
    if (!children.empty()) send_packed(children, kFirst, sequence + s, part, layout, true);
  }
}

std::vector<Tensor> Communicator::gather(const Tensor& x, Rank root) {
  CHECK(root >= 0 && root < size(), root, size());
  const int64_t sequence = next_sequence();
  const uint32_t layout = layout_of(0, x.dtype(), kGather + (uint32_t(root) << 8));  // sizes may differ
  if (rank_ != root) {
    send_packed({{root, 1, 1}}, kFirst, sequence, x, layout, true);
    return {};
  }
  const Staging::Landing own = staging_->down(x);
  own.ready.sync();
  std::vector<Tensor> all;
  for (Rank r = 0; r < size(); ++r)
    all.push_back(r != rank_ ? staging_->beside(kCpu, wait_for(key(r, kFirst, sequence), layout).payload)
                  : x.device().is_host() ? x.clone()
                                         : own.host);
  return all;
}

// Dissemination: after round i everyone has heard, directly or not, of the 2^(i+1) - 1 ranks before it.
void Communicator::barrier() {
  const int64_t sequence = next_sequence();
  int round = 0;
  for (Rank d = 1; d < size(); d <<= 1, ++round) {
    const Tag tag = round == 0 ? kFirst : kSecond;
    const uint32_t layout = layout_of(0, kU8, kBarrier);
    send_packed({{Rank((rank_ + d) % size()), 1, 1}}, tag, sequence + round, nothing(), layout, false);
    wait_for(key((rank_ - d + size()) % size(), tag, sequence + round), layout);
  }
}

std::vector<Tensor> Communicator::windows(const Tensor& x) {
  const int64_t sequence = next_sequence();
  const uint32_t layout = layout_of(x.size(), x.dtype(), kWindows);
  send_packed(all_but(rank_, size()), kFirst, sequence, place_message(transport_, x), layout, false);
  std::vector<Tensor> seen(members_.size());
  seen[size_t(rank_)] = x;
  for (Rank r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    const int64_t place = place_in(wait_for(key(r, kFirst, sequence), layout));
    const Rank w = world_rank(r);
    const bool near = transport_.memory().joins(transport_.rank(), w);
    if (place >= 0 && near) seen[size_t(r)] = transport_.memory().window(w, place, x.size(), x.dtype());
  }
  return seen;
}

void Communicator::average_with(Rank peer, const Tensor& x, Tag tag, int64_t step) {
  CHECK(tag < kOwnTags >> 8 && peer != rank_, tag, peer);
  CHECK(x.dtype() == kF32 && x.device().is_host(), "average_with works on f32 in host memory, not", x.dtype(),
        x.device());
  const Tag first = kAverage + 2 * tag, second = first + 1;
  const Rank w = world_rank(peer);
  const Tensor mine = x.view({x.size()});
  const uint32_t vector = layout_of(x.size(), kF32, kAverageVector),
                 places = layout_of(x.size(), kF32, kAveragePlace);
  if (transport_.memory().joins(transport_.rank(), w)) {
    send_packed({{peer, 1, 1}}, first, step, place_message(transport_, mine), places, false);
    const int64_t place = place_in(wait_for(key(peer, first, step), places));
    if (place >= 0 && transport_.memory().offset_of(mine)) {
      const Tensor other = transport_.memory().window(w, place, x.size(), kF32);
      const int64_t half = x.size() / 2, lo = rank_ < peer ? 0 : half,
                    n = rank_ < peer ? half : x.size() - half;
      average(mine.view({n}, lo), other.view({n}, lo));
      meter_->moved(2 * n * size_of(kF32));
      send_packed({{peer, 1, 1}}, second, step, nothing(), places, false);
      wait_for(key(peer, second, step), places);
      x.storage()->written();  // by the peer, too
      return;
    }
  }
  send_packed({{peer, 1, 1}}, second, step, mine, vector, true);
  const Message theirs = wait_for(key(peer, second, step), vector);
  // Both round their own as the wire rounded the other's, so that both ends hold the same bits.
  Tensor sent = mine;
  if (options_.wire != kF32) {
    Tensor narrow(mine.shape(), options_.wire);
    copy(narrow, mine);
    copy(sent, narrow);
  }
  average(sent, theirs.payload.clone());
}

}  // namespace skein::comm
