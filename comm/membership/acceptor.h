// Acceptor: what a member has promised about the next epoch, and the state with which it would enter it.
#pragma once
#include "comm/membership/letters.h"

namespace skein::comm {

// The acceptor of Paxos. Once it follows a ballot, it completes no further step, so what it has told of its
// state stays true; and it follows no lower ballot.
class Acceptor {
 public:
  // A member of an epoch that begins after `step` steps.
  Acceptor(const View::Member& mine, int64_t step);

  bool has_promised() const { return promised_.round > 0; }
  const Ballot& promised() const { return promised_; }
  const Promise& own() const { return own_; }

  // False, and nothing changes, if a higher ballot was promised before.
  [[nodiscard]] bool follow(const Ballot&);
  void vote(View);  // for what the ballot that it follows proposes

  // The member's state, before it has promised: `steps` steps are completed, and it can go back to any number
  // of them from `oldest` on.
  void complete_step(int64_t steps, int64_t oldest);
  void restored();         // a newcomer holds the state of the epoch's first step, which it lacked
  void card(std::string);  // how others reach it in the next epoch
  void leaves() { own_.leaving = true; }

 private:
  Promise own_;  // but for `waiting`
  Ballot promised_;
};

}  // namespace skein::comm
