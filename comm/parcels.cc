// Parcels: a queue per key, and the bytes that each sender has here.
#include "comm/parcels.h"

#include <sstream>
#include <utility>

namespace skein::comm {

bool matches(const Key& wanted, const Key& k) {
  return wanted.communicator == k.communicator && wanted.tag == k.tag &&
         (wanted.from == kAnyone || wanted.from == k.from) &&
         (wanted.step == kAnyStep || wanted.step == k.step);
}

void Parcels::add(Message m) {
  held_[m.from] += m.bytes;
  const Key key = key_of(m);
  waiting_[key].push_back({std::move(m), ++arrivals_});
}

// The queue whose front matches and arrived first.
Parcels::Queues::iterator Parcels::find(const Key& k) {
  if (k.from != kAnyone && k.step != kAnyStep) return waiting_.find(k);
  auto best = waiting_.end();
  for (auto i = waiting_.lower_bound({k.communicator, k.from, 0, kAnyStep});
       i != waiting_.end() && i->first.communicator == k.communicator; ++i)
    if (matches(k, i->first) &&
        (best == waiting_.end() || i->second.front().arrival < best->second.front().arrival))
      best = i;
  return best;
}

std::optional<Message> Parcels::take(const Key& k) {
  const auto i = find(k);
  if (i == waiting_.end()) return {};
  Message m = std::move(i->second.front().message);
  i->second.pop_front();
  if (i->second.empty()) waiting_.erase(i);
  held_[m.from] -= m.bytes;
  return m;
}

bool Parcels::room(Rank from, int64_t bytes) const {
  const auto h = held_.find(from);
  return h == held_.end() || h->second == 0 || h->second + bytes <= bound_;
}

std::optional<int64_t> Parcels::later_step(const Key& k) const {
  if (waiting_.count(k)) return {};
  const auto i = waiting_.upper_bound(k);
  if (i == waiting_.end() || !matches({k.communicator, k.from, k.tag, kAnyStep}, i->first)) return {};
  return i->first.step;
}

std::string Parcels::list(uint32_t communicator, Rank from) const {
  std::ostringstream s;
  int n = 0;
  for (const auto& [k, parcels] : waiting_)
    if (k.communicator == communicator && (from == kAnyone || k.from == from) && n++ < 4)
      s << (n > 1 ? ", " : "") << "tag " << k.tag << " step " << k.step << " of rank " << k.from;
  return s.str() + (n > 4 ? ", ..." : "");
}

}  // namespace skein::comm
