// Meter and Trace: adding up, and writing down.
#include "comm/meter.h"

#include <algorithm>

namespace skein::comm {

void Trace::add(const Span& s) {
  const std::lock_guard lock(mutex_);
  if (spans_.size() < kMost)
    spans_.push_back(s);
  else
    ++left_out_;
}
std::vector<Span> Trace::spans() const {
  const std::lock_guard lock(mutex_);
  return spans_;
}
int64_t Trace::left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

void Cover::add(double begin, double end) {
  begin = std::max(begin, folded_until_);
  if (!(end > begin)) return;
  // The first part that begins later. It is looked for from the end, near which almost all are added: where
  // a process holds thousands of ranks, a search through the whole tree misses the cache at every level.
  auto i = parts_.end();
  while (i != parts_.begin() && std::prev(i)->first > begin) --i;
  if (i == parts_.end() && !parts_.empty() && std::prev(i)->second >= begin) {  // goes on with the last one
    double& last = std::prev(i)->second;
    in_parts_ += std::max(end, last) - last, last = std::max(end, last);
    return;
  }
  if (i != parts_.begin() && std::prev(i)->second >= begin) begin = (--i)->first;
  while (i != parts_.end() && i->first <= end) {
    end = std::max(end, i->second);
    in_parts_ -= i->second - i->first;
    i = parts_.erase(i);
  }
  parts_.emplace_hint(i, begin, end);
  in_parts_ += end - begin;
  if (parts_.size() <= kParts) return;
  while (parts_.size() > kParts / 2) {
    const double length = parts_.begin()->second - parts_.begin()->first;
    folded_ += length, in_parts_ -= length;
    folded_until_ = parts_.begin()->second;
    parts_.erase(parts_.begin());
  }
}

bool Meter::turn(bool on) { return on_.exchange(on); }

void Meter::record(Trace* trace) {
  const std::lock_guard lock(mutex_);
  trace_ = trace;
}

Traffic Meter::traffic() const {
  const std::lock_guard lock(mutex_);
  return {messages_, bytes_, to_others_, waited_, in_flight_.length()};
}

bool Meter::counts() const { return on_ && this_thread() == computes_; }

void Meter::sent(int64_t bytes, bool to_itself) {
  if (!on_) return;
  ++messages_;
  to_others_ += !to_itself;
  bytes_ += bytes;
}

void Meter::moved(int64_t bytes) {
  if (on_) bytes_ += bytes;
}

void Meter::pushed(uint32_t communicator, const Header& h, double now) {
  if (!counts()) return;
  const std::lock_guard lock(mutex_);
  std::deque<Transfer>& transfers = transfers_[{communicator, h.tag}];
  for (const Transfer& f : transfers)
    if (f.step == h.step) return;  // a push to several peers begins with the first
  transfers.push_back({h.step, now});
  if (transfers.size() > kTransfers) transfers.pop_front();
}

void Meter::took(uint32_t communicator, const Message& m) {
  if (this_thread() != computes_) return;
  const std::lock_guard lock(mutex_);
  const auto transfers = transfers_.find({communicator, m.tag});
  if (transfers == transfers_.end()) return;
  for (const Transfer& f : transfers->second)
    if (f.step == m.step) arrived({Track::kTransfer, "message", f.began, m.arrived, m.step, m.bytes, m.from});
}

void Meter::transfer(const char* name, double began, double landed, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  arrived({Track::kTransfer, name, began, landed, -1, bytes, -1});
}

void Meter::blocked(const char* name, Rank from, int64_t step, double began, double ended) {
  if (!counts() || !(ended > began)) return;
  const std::lock_guard lock(mutex_);
  waited_ += ended - began;
  in_flight_.add(began, ended);
  if (trace_) trace_->add({Track::kWaiting, name, began, ended, step, -1, from});
}

void Meter::arrived(const Span& s) {
  if (!(s.end > s.begin)) return;  // it had arrived before it was waited for
  in_flight_.add(s.begin, s.end);
  if (trace_) trace_->add(s);
}

}  // namespace skein::comm
