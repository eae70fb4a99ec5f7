// Meter and Trace: adding up, and writing down.
#include "comm/meter.h"

#include <algorithm>
#include <iterator>

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
  auto from = parts_.end();  // of the parts that it meets; from the end, near which almost all are added
  while (from != parts_.begin() && std::prev(from)->end >= begin) --from;
  auto to = from;
  for (; to != parts_.end() && to->begin <= end; ++to) {
    in_parts_ -= to->end - to->begin;
    begin = std::min(begin, to->begin), end = std::max(end, to->end);
  }
  in_parts_ += end - begin;
  if (from == to) {
    parts_.insert(from, {begin, end});
  } else {
    *from = {begin, end};
    parts_.erase(from + 1, to);
  }
  if (std::ssize(parts_) <= kParts) return;
  const auto kept = parts_.begin() + kParts / 2;
  for (auto i = parts_.begin(); i != kept; ++i) folded_ += i->end - i->begin, in_parts_ -= i->end - i->begin;
  folded_until_ = std::prev(kept)->end;
  parts_.erase(parts_.begin(), kept);
}

// The latest first, which almost always is the one; what is newer than all is none of them.
const Meter::Transfer* Meter::Transfers::find(int64_t step) const {
  if (step > highest_) return nullptr;
  for (size_t i = added_; i > 0 && i + kMost > added_; --i)
    if (const Transfer& t = last_[(i - 1) % kMost]; t.step == step) return &t;
  return nullptr;
}

void Meter::Transfers::add(const Transfer& t) {
  last_[added_++ % kMost] = t;
  highest_ = std::max(highest_, t.step);
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

void Meter::sent(int64_t bytes, bool to_itself, bool counted) {
  if (!counted) return;
  ++messages_;
  to_others_ += !to_itself;
  bytes_ += bytes;
}

void Meter::moved(int64_t bytes, bool counted) {
  if (counted) bytes_ += bytes;
}

void Meter::pushed(uint32_t communicator, const Header& h, double now) {
  if (!counts()) return;
  const std::lock_guard lock(mutex_);
  Transfers& transfers = transfers_[{communicator, h.tag}];
  if (transfers.find(h.step)) return;  // a push to several peers begins with the first
  transfers.add({h.step, now});
}

void Meter::took(uint32_t communicator, const Message& m) {
  if (this_thread() != computes_) return;
  const std::lock_guard lock(mutex_);
  const auto transfers = transfers_.find({communicator, m.tag});
  if (transfers == transfers_.end()) return;
  if (const Transfer* f = transfers->second.find(m.step))
    arrived({Track::kTransfer, "message", f->began, m.arrived, m.step, m.bytes, m.from});
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
