// Succession: the members of an epoch choose the members of the next. Any of them may die, and
// none is special.
//
//   L. Lamport, "Paxos made simple", 2001: one decree per epoch; the epoch's members are the acceptors. All state is in
//   memory, because a process that comes back has a new id. A member that follows a ballot completes no further step of
//   this epoch, so what it promises about its state stays true.
//
//   V   the members of the epoch      Q   the members that have said yes
//   D   the members that are proven dead: known to have ended, not merely silent
//   A newcomer that is known never to have begun the epoch, nor ever to begin it, is not counted in V: it has no vote.
//   quorum:  2|Q| > |V|,   or   V \ D within Q and 2|D| <= |V|,   or   2|Q| = |V| where a register decides
//
// Two quorums without a register share a member; otherwise each proposer would have been proven dead before
// the other one proposed, which cannot be. A register is a cell that keeps the first view it is given for an
// epoch and returns it to all that ask. If there is one, it decides, and ballots only freeze a quorum first.
//
// There are no sockets, clocks or threads here: the caller carries letters, which may be lost, duplicated,
// late and out of order, and reports what it knows of the others. Not thread-safe.
#pragma once
#include <map>
#include <memory>
#include <set>

#include "comm/membership/letters.h"

namespace skein::comm {

struct Letter {
  MemberId to = 0;
  std::string bytes;
};

// The answers to a ballot so far.
struct Census {
  int members = 0, said = 0, dead = 0;  // |V|, |Q|, |D|
  bool all_others = false;              // V \ D is within Q
  bool has_register = false;
};
bool is_quorum(const Census&);

// The rules by which an epoch has only one successor. Tests replace them to show that each is needed.
struct Rules {
  bool (*quorum)(const Census&) = is_quorum;
  bool heeds_votes = true;  // of earlier ballots
};

class Succession {
 public:
  // Equal for all members of an epoch.
  struct Options {
    bool has_register = false;
    double patience =
        0.5;  // seconds that a member leaves to each one before it that it does not suspect, to propose
    double retry = 0.1;  // seconds until an unanswered letter is sent again
    double grace =
        2;  // seconds that a proposal waits for members that are not suspected, once it has a quorum
  };
  // `me` is in `now`.
  Succession(MemberId me, View now, Options options, Rules rules = {});

  // ---- events; each returns letters to send. Unreadable bytes are counted and dropped.
  std::vector<Letter> receive(MemberId from, const std::string& bytes);
  std::vector<Letter> tick(double now);  // seconds of any clock that does not go back; every few milliseconds
  // ---- what is known of the other members, and of newcomers at a door
  void suspect(MemberId);     // it is silent
  void trust(MemberId);       // it is heard again
  void prove_dead(MemberId);  // it has ended, and its last letter was sent; final
  void never_came(MemberId);  // a newcomer of this epoch that has not begun it and never will
  void leaves(MemberId);      // it has announced that it leaves (this member, too, may); final
  // A newcomer knocked here, with a card of at most kLongestCard; forgotten when it is in a view.
  void joins(const View::Member&);
  // Newcomers that knocked and are not in next(), for the next epoch's Succession.
  std::vector<View::Member> waiting() const;

  // ---- this member's own state, from which it would continue Whether it has promised: then it completes no
  // further step and drops no state that it could go back to.
  bool frozen() const { return promised_.round > 0 || next_.has_value(); }
  // False if frozen: the step does not count. Otherwise the member has completed `steps` steps and can go
  // back to any number of them from `oldest` on; older states may be dropped.
  [[nodiscard]] bool complete_step(int64_t steps, int64_t oldest);
  bool complete_step(int64_t steps) { return complete_step(steps, steps); }
  void restored();         // a newcomer holds the state of the epoch's first step, which it lacked
  void card(std::string);  // how others reach it in the next epoch: valid from now on

  // ---- the end of the run This member has completed the run; returns letters that
  // say so. Members that hear it choose no further epoch, and pass it on to all that
  // ask for one.
  std::vector<Letter> end(const End&);
  const std::optional<End>& ended() const { return ended_; }

  // ---- outcome
  const View& now() const { return now_; }
  // The next view, once decided: then a new Succession is due. An excluded member has the last one that it
  // was told of. If none of its members has state, the run's state is lost.
  const std::optional<View>& next() const { return next_; }
  bool excluded() const { return excluded_; }  // it has been told that it is in no later epoch
  int64_t unreadable() const { return unreadable_; }

  // ---- the register. wants_register() is the view to claim in it; register_says() takes the view that it
  // keeps for that epoch, whichever member claimed it. Answers may come at any time, even twice or unasked.
  std::optional<View> wants_register() const;
  std::vector<Letter> register_says(const View&);

 private:
  using Letters = std::vector<Letter>;
  struct Peer {
    bool suspected = false, dead = false, leaving = false;
    bool here = false;   // it is known to be in this epoch
    bool never = false;  // it is known never to be
    bool votes() const { return !dead && !never; }
  };
  struct Proposal {
    Ballot ballot;
    double began = 0, sent = 0;
    std::vector<std::unique_ptr<Promise>> promises;  // by rank
    std::vector<bool> said;                          // by rank: yes to what was asked last
    std::optional<View> value;                       // once there was a quorum of promises
  };
  // When to propose.
  struct Pace {
    std::optional<double> since;  // when a change became due, or another member tried
    int attempts = 0;
    MemberId leaves_to = 0;  // the member that tried; 0: none, or it is gone
    uint64_t round = 0;      // the highest that was refused for
  };

  void hear(MemberId from, int rank, Content&, Letters&);
  void hear_prepare(MemberId from, const Ballot&, Letters&);
  void hear_promise(int rank, Content&, Letters&);
  void hear_accept(MemberId from, Content&, Letters&);
  void hear_decided(MemberId from, View&, Letters&);
  void hear_ended(const End&);
  void yield_to(const Ballot&);
  void stop_yielding_to(MemberId);

  bool change_is_due() const;
  double delay() const;
  void propose(Letters&);
  void repeat(Letters&);
  void advance(Letters&);
  bool quorum() const;
  bool awaits_somebody() const;
  std::optional<View> chosen() const;
  std::optional<View> successor() const;
  void decide(View, Letters&);

  void tell_of_epoch(Letters&);
  void post(MemberId to, Content, Letters&);
  void ask(const Content&, Letters&);
  Content content(Word) const;

  const MemberId me_;
  const View now_;
  const Options options_;
  const Rules rules_;
  const int rank_;
  double clock_ = 0;
  std::vector<Peer> peers_;                   // by rank
  std::map<MemberId, View::Member> waiting_;  // who knocked here
  std::set<MemberId> absent_;                 // suspected, dead or leaving ones that are no members
  Promise own_;                               // but for `waiting`
  Ballot promised_;
  std::optional<Proposal> proposal_;
  Pace pace_;
  double tell_at_ = 0, tell_pause_ = 0;
  std::optional<View> next_;
  std::optional<End> ended_;
  bool excluded_ = false;
  int64_t unreadable_ = 0;
};

}  // namespace skein::comm
