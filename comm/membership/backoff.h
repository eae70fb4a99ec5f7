// Backoff: when a member may propose, so that members seldom do so at the same time.
#pragma once
#include <cstdint>
#include <optional>

#include "comm/membership/letters.h"

namespace skein::comm {

class Backoff {
 public:
  // Another member proposes: it gets some time before this member tries again. `cut_short`: an attempt of
  // this member's has failed by it.
  void yield_to(const Ballot&, bool cut_short);
  void stop_yielding_to(MemberId);               // it got time to complete its attempt, and is lost meanwhile
  void refused_for(const Ballot&);               // a higher one than this member's
  uint64_t refused() const { return refused_; }  // the highest round among them

  // While a change is due: whether this member proposes now. `in_front`: members of lower rank that may
  // propose as well; `place`: this member's rank as a fraction of all.
  bool is_time(double now, double patience, int in_front, double place);
  void nothing_is_due() { since_.reset(); }

 private:
  std::optional<double> since_;  // when a change became due, or another member tried
  int attempts_ = 0;
  MemberId leaves_to_ = 0;  // the member that tried; 0: none, or it is gone
  uint64_t refused_ = 0;
};

}  // namespace skein::comm
