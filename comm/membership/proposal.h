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
  double age(double now) const { return now - began_; }
  double since_asked(double now) const { return now - asked_; }

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
  double began_, asked_;
  std::vector<std::unique_ptr<Promise>> promises_;  // by rank
  Answers said_;
  std::optional<View> value_;
};

}  // namespace skein::comm
