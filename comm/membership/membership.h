// Membership: the epoch all messages carry, and which ranks are alive, gone or lost.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/clock.h"
#include "engine/base.h"

namespace skein::comm {

using Rank = int32_t;

// A peer died, hung up or fell silent. `rank` is its rank in the world, not in a group.
struct PeerLost : Error {
  PeerLost(Rank rank, const std::string& what) : Error(what), rank(rank) {}
  Rank rank;
};
// A wait ended without its message; what() says which rank, tag and step it waited for.
struct Timeout : Error {
  Timeout(Rank rank, const std::string& what) : Error(what), rank(rank) {}
  Rank rank;  // -1: no particular rank
};
// The other ranks have given this one up and continue, or end, without it.
struct GivenUp : Error {
  using Error::Error;
};
// The membership is about to change: nothing of this epoch is waited for any more.
struct EpochEnds : Error {
  using Error::Error;
};
// Two ranks disagree about the epoch, step, tag, size or layout of a message. Thrown on both ends.
struct Disagreement : Error {
  using Error::Error;
};

// Transports report what they see, waits ask. Thread-safe.
class Membership {
 public:
  explicit Membership(int size, uint32_t epoch = 1) : epoch_(epoch), state_(size_t(size)) {}
  int size() const { return int(state_.size()); }
  uint32_t epoch() const { return epoch_; }
  void set_epoch(uint32_t e) { epoch_ = e; }

  // The rank died or fell silent; the first reason is kept. `ended`: it has certainly ended, and is not a
  // rank that was cut off and continues alone. `silent`: seconds since its last sign of life, where known.
  void lose(Rank, const std::string& why, bool ended = false, std::optional<double> silent = {});
  void leave(Rank);  // it said goodbye: an error only for ranks that still wait for it
  // It said goodbye because of an error. If all ranks have that error, each will soon meet it. A rank that
  // still waits some seconds later misses this one, so settle() then counts it as lost.
  void fail(Rank);
  void settle();                                  // cheap; called while waiting
  bool unsettled() const { return failed_ > 0; }  // settle() will have something to do
  bool alive(Rank) const;
  bool lost(Rank) const;
  bool ended(Rank) const;       // it has certainly ended: it left, or its end was seen
  std::string why(Rank) const;  // why it is lost or has left; empty if it is alive
  // Of a lost rank: seconds from its last sign of life until lose(), where known.
  std::optional<double> silent_for(Rank) const;
  bool any_lost() const { return lost_ > 0; }
  std::vector<Rank> dead() const;  // lost, in rank order
  // Throws PeerLost if the rank is lost or has left.
  void require(Rank) const;

 private:
  enum class State : uint8_t { kAlive, kLeft, kLost };
  std::atomic<uint32_t> epoch_;
  std::atomic<int> lost_{0}, failed_{0};  // failed_ counts those not yet lost
  mutable std::mutex mutex_;
  std::vector<State> state_;
  struct Fate {
    std::string why;
    bool ended = false;
    std::optional<double> silent = {};
    Clock::time_point failed_at{};
  };
  std::map<Rank, Fate> fates_;  // of those that are not alive
};

}  // namespace skein::comm
