// Succession: the members of an epoch choose the members of the next. Any of them may die, and
// none is special.
//
//   L. Lamport, "Paxos made simple", 2001: one decree per epoch; the epoch's members are the acceptors. All
//   state is in memory, because a process that comes back has a new id. A member that follows a ballot
//   completes no further step of this epoch, so what it promises about its state stays true.
//
//   V   the members of the epoch      Q   the members that have said yes
//   D   the members that are proven dead: known to have ended, not merely silent
//   A newcomer that is known never to have begun the epoch, nor ever to begin it, is not counted in V: it has
//   no vote.
//   quorum:  2|Q| > |V|,   or   V \ D within Q and 2|D| <= |V|,   or   2|Q| = |V| where a register decides
//
// Two quorums without a register share a member; otherwise each proposer would have been proven dead before
// the other one proposed, which cannot be. A register is a cell that keeps the first view it is given for an
// epoch and returns it to all that ask. If there is one, it decides, and ballots only freeze a quorum first.
//
// There are no sockets, clocks or threads here: the caller carries letters, which may be lost, duplicated,
// late and out of order, and reports what it knows of the others. Not thread-safe.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "comm/membership/acceptor.h"
#include "comm/membership/backoff.h"
#include "comm/membership/letters.h"
#include "comm/membership/outage.h"
#include "comm/membership/proposal.h"
#include "comm/membership/roll.h"

namespace skein::comm {

// The rules by which an epoch has only one successor. Tests replace them to show that each is needed.
struct Rules {
  bool (*quorum)(const Census&) = is_quorum;
  bool heeds_votes = true;  // of earlier ballots
};

// Large class: it has the answer to every word of one protocol, and they are right or wrong together. What a
// member knows of the others (Roll), has promised (Acceptor) and proposes (Proposal, Backoff) has classes.
class Succession {
 public:
  // Equal for all members of an epoch.
  struct Options {
    bool has_register = false;
    double patience = 0.5;  // seconds that a member leaves to each unsuspected one before it, to propose
    // Seconds until an unanswered letter is sent again, and that a proposal with a quorum waits for suspected
    // members; `grace`: for others. After an outage of its own a member trusts no suspicion for as long.
    double retry = 0.1, grace = 2;
  };
  // `me` is in `now`.
  Succession(MemberId me, View now, Options options, Rules rules = {});

  // ---- events; each returns letters to send. Unreadable bytes are dropped.
  std::vector<Letter> receive(MemberId from, const std::string& bytes);
  std::vector<Letter> tick(double now);  // seconds of any clock that does not go back; every few milliseconds
  // ---- what is known of the other members, and of newcomers at a door
  void suspect(MemberId);                     // it is silent
  void trust(MemberId m) { roll_.trust(m); }  // it is heard again
  void prove_dead(MemberId);                  // it has ended, and its last letter was sent; final
  // A newcomer that has not begun this epoch and never will.
  void never_came(MemberId m) { roll_.never_came(m); }
  void leaves(MemberId);  // it has announced that it leaves (this member, too, may); final
  // A newcomer knocked here, with a card of at most kLongestCard; forgotten when it is in a view.
  void joins(const View::Member& m) { roll_.joins(m); }
  // Newcomers that knocked and are not in next(), for the next epoch's Succession.
  std::vector<View::Member> waiting() const;

  // ---- this member's own state, from which it would continue
  // Whether it has promised: then it completes no further step and drops no state that it could go back to.
  bool frozen() const { return acceptor_.has_promised() || next_.has_value(); }
  // False if frozen: the step does not count. Otherwise the member has completed `steps` steps and can go
  // back to any number of them from `oldest` on; older states may be dropped.
  [[nodiscard]] bool complete_step(int64_t steps, int64_t oldest);
  void restored() { acceptor_.restored(); }  // a newcomer holds the state of the first step, which it lacked
  void card(std::string c) { acceptor_.card(std::move(c)); }  // how others reach it in the next epoch

  // ---- the end of the run
  // This member has completed the run; returns letters that say so. Members that hear it choose no further
  // epoch, and pass it on to all that ask for one.
  std::vector<Letter> end(const End&);
  const std::optional<End>& ended() const { return ended_; }

  // ---- outcome
  const View& now() const { return roll_.now(); }
  // The next view, once decided: then a new Succession is due. An excluded member has the last one that it
  // was told of. If none of its members has state, the run's state is lost.
  const std::optional<View>& next() const { return next_; }
  bool excluded() const { return excluded_; }  // it has been told that it is in no later epoch

  // ---- the register. wants_register() is the view to claim in it; register_says() takes the view that it
  // keeps for that epoch, whichever member claimed it. Answers may come at any time, even twice or unasked.
  std::optional<View> wants_register() const;
  std::vector<Letter> register_says(const View&);

 private:
  using Letters = std::vector<Letter>;

  void hear(MemberId from, int rank, Content&, Letters&);
  void hear_prepare(MemberId from, const Ballot&, Letters&);
  void hear_accept(MemberId from, Content&, Letters&);
  void hear_decided(MemberId from, View&, Letters&);
  void hear_ended(const End&);
  bool follow(MemberId from, const Ballot&);
  void refuse(MemberId, const Ballot&, Letters&);
  void yield_to(const Ballot&);

  bool change_is_due() const;
  bool is_quorum(const Answers& said) const;
  void ask(Letters&);
  void advance(Letters&);
  void decide(View, Letters&);

  void tell_of_epoch(Letters&);
  void post(MemberId to, Content, Letters&);
  Content content(Word) const;

  const Options options_;
  const Rules rules_;
  Roll roll_;
  Acceptor acceptor_;
  Backoff backoff_;
  Outage outage_;
  std::optional<Proposal> proposal_;
  double clock_ = 0, tell_at_ = 0, tell_pause_ = 0;
  std::optional<View> next_;
  std::optional<End> ended_;
  bool excluded_ = false;
};

}  // namespace skein::comm
