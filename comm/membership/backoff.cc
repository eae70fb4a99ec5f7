// Backoff: the lowest member that is not suspected proposes at once. After an attempt no two members wait
// equally long, and all wait longer the more attempts have failed.
#include "comm/membership/backoff.h"

#include <algorithm>
#include <cmath>

namespace skein::comm {
namespace {

constexpr int kMostTurns = 8;      // members before this one that it leaves time to
constexpr int kMostDoublings = 2;  // of the time between its attempts

}  // namespace

void Backoff::yield_to(const Ballot& b, bool cut_short) {
  attempts_ = std::max(attempts_ + cut_short, 1);
  leaves_to_ = b.by;
  since_.reset();
}

void Backoff::stop_yielding_to(MemberId m) {
  if (leaves_to_ != m) return;
  leaves_to_ = 0;
  attempts_ = 0;
}

void Backoff::refused_for(const Ballot& higher) { refused_ = std::max(refused_, higher.round); }

bool Backoff::is_time(double now, double patience, int in_front, double place) {
  if (!since_) since_ = now;
  const double turns = std::min(in_front, kMostTurns);
  double delay = patience * turns;
  if (attempts_ > 0)
    delay = patience * (1 + turns + place) * std::exp2(std::min(attempts_ - 1, kMostDoublings));
  return now - *since_ >= delay;
}

}  // namespace skein::comm
