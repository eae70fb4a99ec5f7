// EqualShares: flows that share one resource evenly, each of which begins or ends at the cost of a logarithm.
#pragma once
#include <cstdint>
#include <set>
#include <unordered_map>

#include "comm/clock.h"

namespace skein::comm::sim {

// It counts in a time of its own: the amount that a flow would have had that was there from the beginning. A
// flow of amount a that begins at h ends at h + a, whichever others begin and end meanwhile.
class EqualShares {
 public:
  using Flow = uint64_t;
  EqualShares(double capacity, Clock::time_point now) : capacity_(capacity), since_(now) {}
  void join(Flow, double amount, Clock::time_point now);
  double leave(Flow, Clock::time_point now);  // returns what it has left
  size_t size() const { return ends_.size(); }
  double rate() const { return capacity_ / double(size()); }  // of each
  // Who ends first, and in how many seconds from the last call of join() or leave(), if nothing changes.
  Flow first() const { return in_order_.begin()->second; }
  double seconds_to_first() const { return (in_order_.begin()->first - had_) / rate(); }

 private:
  void go_on(Clock::time_point now);

  const double capacity_;
  double had_ = 0;
  Clock::time_point since_;
  std::unordered_map<Flow, double> ends_;
  std::set<std::pair<double, Flow>> in_order_;
};

}  // namespace skein::comm::sim
