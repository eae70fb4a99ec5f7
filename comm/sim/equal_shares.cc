// Processor sharing by virtual time.
#include "comm/sim/equal_shares.h"

#include <algorithm>

namespace skein::comm::sim {

void EqualShares::go_on(Clock::time_point now) {
  if (size() > 0) had_ += rate() * std::chrono::duration<double>(now - since_).count();
  since_ = now;
}

void EqualShares::join(Flow f, double amount, Clock::time_point now) {
  go_on(now);
  ends_[f] = had_ + amount;
  in_order_.emplace(had_ + amount, f);
}

double EqualShares::leave(Flow f, Clock::time_point now) {
  go_on(now);
  const auto i = ends_.find(f);
  const double end = i->second;
  in_order_.erase({end, f});
  ends_.erase(i);
  return std::max(0.0, end - had_);
}

}  // namespace skein::comm::sim
