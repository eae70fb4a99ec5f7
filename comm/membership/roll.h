// Roll: what a member knows of the other members of its epoch, and of the newcomers at its door.
#pragma once
#include <map>
#include <set>
#include <vector>

#include "comm/membership/view.h"

namespace skein::comm {

// The answers to a ballot so far. V: the members of the epoch that have a vote; Q: those that have said yes;
// D: those that are proven dead.
struct Census {
  int members = 0, said = 0, dead = 0;  // |V|, |Q|, |D|
  bool all_others = false;              // V \ D is within Q
  bool has_register = false;
};
bool is_quorum(const Census&);  // the rule of succession.h

// Answers to a ballot, by rank.
using Answers = std::vector<bool>;

class Roll {
 public:
  struct Peer {
    bool suspected = false, dead = false, leaving = false;
    bool here = false;   // it is known to be in this epoch
    bool never = false;  // it is known never to be
    bool votes() const { return !dead && !never; }
  };
  // `me` is in `now`.
  Roll(MemberId me, View now);

  const View& now() const { return now_; }
  MemberId me() const { return me_; }
  int rank() const { return rank_; }  // of `me`
  int size() const { return int(peers_.size()); }
  const Peer& operator[](int rank) const { return peers_[size_t(rank)]; }
  MemberId id(int rank) const { return now_.members[size_t(rank)].id; }

  // What is heard of members, and of others that knock or are named by members (succession.h). suspect() and
  // prove_dead() return whether that is new of a member.
  bool suspect(MemberId);
  void trust(MemberId);
  bool prove_dead(MemberId);
  void never_came(MemberId);
  void leaves(MemberId);
  void is_here(int rank) { peers_[size_t(rank)].here = true; }
  void joins(const View::Member&);

  // All that knocked here, and those of them of whom nothing is known that keeps them from coming in.
  const std::map<MemberId, View::Member>& waiting() const { return waiting_; }
  std::vector<View::Member> newcomers() const;
  bool may_come(MemberId m) const { return !now_.has(m) && !absent_.count(m); }

  // Whether somebody is gone or wants to leave or come in.
  bool differs_from_view() const;
  bool anybody_stays() const;
  int in_front() const;  // how many members of lower rank have a vote and are not suspected
  Census census(const Answers&) const;
  Answers heard() const;  // yes: of all that have a vote and are not suspected
  // Whether the answer of a member with a vote is awaited, `waited` seconds after a quorum was there: `grace`
  // seconds of one that is not suspected, `retry` of another.
  bool awaits(const Answers&, double waited, double grace, double retry) const;

 private:
  const MemberId me_;
  const View now_;
  const int rank_;
  std::vector<Peer> peers_;                   // by rank
  std::map<MemberId, View::Member> waiting_;  // those that knocked here
  std::set<MemberId> absent_;                 // suspected, dead or leaving ones that are no members
};

}  // namespace skein::comm
