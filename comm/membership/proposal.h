// Proposal: one ballot of this member for the next epoch's members, and the answers to it.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "comm/membership/letters.h"
#include "comm/membership/roll.h"

namespace skein::comm {

// First it collects promises; then it has a value, the next view, and collects votes for it.
class Proposal {
 public:
  Proposal(Ballot, int members, double now);

  const Ballot& ballot() const { return ballot_; }
  const std::optional<View>& value() const { return value_; }
  const Answers& said() const { return said_; }  // yes to what was asked last
  double since_asked(double now) const { return now - asked_; }
  // Seconds since a quorum promised, which it did now at the latest. While a proposer is cut off, time says
  // nothing about the members that have not answered.
  double since_quorum(double now) {
    if (!quorum_) quorum_ = now;
    return now - *quorum_;
  }

  void ask(double now) { asked_ = now; }
  void promised(int rank, Promise);
  void accepted(int rank) { said_[size_t(rank)] = true; }
  // Once there is a quorum of promises: chooses the value, and what was said before counts no more. No value
  // if all that promised leave. A vote may belong to a view that has been decided, so the last one is
  // proposed again; `heeds_votes` is false in tests only.
  void choose(const Roll&, bool heeds_votes);

 private:
  std::optional<View> successor(const Roll&) const;

  Ballot ballot_;
  double asked_;
  std::optional<double> quorum_;                    // when it had promised
  std::vector<std::unique_ptr<Promise>> promises_;  // by rank
  Answers said_;
  std::optional<View> value_;
};

}  // namespace skein::comm
