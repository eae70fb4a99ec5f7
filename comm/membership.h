// Membership: the epoch all messages carry, and which ranks are alive, gone or lost.
#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "comm/clock.h"
#include "engine/base.h"

namespace skein::comm {

using Rank = int32_t;

// A peer died, hung up or fell silent: `rank` counts in the world, not in a group.
struct PeerLost : Error {
  PeerLost(Rank rank, const std::string& what) : Error(what), rank(rank) {}
  Rank rank;
};
// A wait ended without what it waited for; the message says whom, which tag and which step.
struct Timeout : Error {
  Timeout(Rank rank, const std::string& what) : Error(what), rank(rank) {}
  Rank rank;  // -1: nobody in particular
};
// The others have given this rank up and continue, or end, without it.
struct GivenUp : Error {
  using Error::Error;
};
// Two ranks do not mean the same thing: epoch, step, tag, bytes or layout differ. Raised on both ends.
struct Disagreement : Error {
  using Error::Error;
};

// Thread-safe. Transports report what they see; waits ask.
class Membership {
 public:
  explicit Membership(int size, uint32_t epoch = 1)
      : epoch_(epoch),
        state_(size_t(size)),
        ended_(size_t(size)),
        failed_at_(size_t(size)),
        why_(size_t(size)) {}
  int size() const { return int(state_.size()); }
  uint32_t epoch() const { return epoch_; }
  void set_epoch(uint32_t e) { epoch_ = e; }
  // While a membership changes, ranks reach the next epoch at different moments. From now on messages of the
  // epochs next to one's own come in (their communicators differ, so nothing is mixed), older ones are
  // dropped; else every other epoch is refused.
  void let_epochs_overlap() { overlap_ = true; }
  bool welcomes(uint32_t e) const {
    return e == epoch_ || (overlap_ && (e + 1 == epoch_ || e == epoch_ + 1));
  }
  bool past(uint32_t e) const { return overlap_ && e + 1 < epoch_; }

  // Died or fell silent; the first reason stays. `ended`: it certainly does nothing more, so it cannot be one
  // that, cut off, goes on without us.
  void lose(Rank, const std::string& why, bool ended = false);
  void leave(Rank);  // said goodbye: nobody's error until something is asked of it
  // Said goodbye because of an error. If that is everybody's, each will soon meet it; who still waits some
  // seconds later misses this rank, so then it is lost: settle() sees to that.
  void fail(Rank);
  void settle();  // cheap; called while waiting
  bool alive(Rank) const;
  bool lost(Rank) const;
  bool ended(Rank) const;       // certainly: it left, or its end was seen
  std::string why(Rank) const;  // it is lost or has left; empty of the living
  bool any_lost() const { return lost_ > 0; }
  std::vector<Rank> dead() const;  // lost, in rank order
  // Throws PeerLost if the rank is lost or has left.
  void require(Rank) const;

 private:
  enum class State : uint8_t { kAlive, kLeft, kLost };
  std::atomic<uint32_t> epoch_;
  std::atomic<bool> overlap_{false};
  std::atomic<int> lost_{0}, failed_{0};  // failed: not yet lost
  mutable std::mutex mutex_;
  std::vector<State> state_;
  std::vector<bool> ended_;
  std::vector<Clock::time_point> failed_at_;
  std::vector<std::string> why_;
};

}  // namespace skein::comm
