// Roll: facts about members by rank, about others by name.
#include "comm/membership/roll.h"

#include <algorithm>
#include <utility>

#include "engine/base.h"

namespace skein::comm {

bool is_quorum(const Census& c) {
  if (2 * c.said > c.members) return true;
  if (c.all_others && 2 * c.dead <= c.members) return true;
  return c.has_register && 2 * c.said == c.members;
}

Roll::Roll(MemberId me, View now)
    : me_(me), now_(std::move(now)), rank_(now_.rank(me)), peers_(now_.members.size()) {
  CHECK(rank_ >= 0, "a succession is of the epoch's members");
  is_here(rank_);
}

bool Roll::suspect(MemberId m) {
  const int r = now_.rank(m);
  if (r < 0) absent_.insert(m);
  return r >= 0 && r != rank_ && !std::exchange(peers_[size_t(r)].suspected, true);
}

void Roll::trust(MemberId m) {
  const int r = now_.rank(m);
  if (r < 0) absent_.erase(m);
  if (r >= 0) peers_[size_t(r)].suspected = false;
}

bool Roll::prove_dead(MemberId m) {
  const int r = now_.rank(m);
  CHECK(r != rank_, "a member cannot prove its own death");
  if (r < 0) absent_.insert(m), waiting_.erase(m);
  return r >= 0 && !std::exchange(peers_[size_t(r)].dead, true);
}

void Roll::never_came(MemberId m) {
  const int r = now_.rank(m);
  CHECK(r < 0 || (r != rank_ && !peers_[size_t(r)].here), "it has begun the epoch:", m);
  if (r >= 0) peers_[size_t(r)].never = true;
}

void Roll::leaves(MemberId m) {
  const int r = now_.rank(m);
  if (r >= 0) peers_[size_t(r)].leaving = true;
  if (r < 0) absent_.insert(m), waiting_.erase(m);
}

void Roll::joins(const View::Member& m) {
  if (now_.has(m.id) || waiting_.size() == kMostMembers || m.card.size() > kLongestCard) return;
  waiting_[m.id] = {m.id, m.card, false};
}

std::vector<View::Member> Roll::newcomers() const {
  std::vector<View::Member> all;
  for (const auto& [id, m] : waiting_)
    if (!absent_.count(id)) all.push_back(m);
  return all;
}

bool Roll::differs_from_view() const {
  const auto changes = [](const Peer& p) { return p.suspected || !p.votes() || p.leaving; };
  const auto comes = [&](const auto& w) { return !absent_.count(w.first); };
  return std::any_of(peers_.begin(), peers_.end(), changes) ||
         std::any_of(waiting_.begin(), waiting_.end(), comes);
}

bool Roll::anybody_stays() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& p) { return p.votes() && !p.leaving; });
}

int Roll::in_front() const {
  return int(std::count_if(peers_.begin(), peers_.begin() + rank_,
                           [](const Peer& p) { return !p.suspected && p.votes(); }));
}

Census Roll::census(const Answers& said) const {
  Census c;
  c.all_others = true;
  for (size_t r = 0; r < peers_.size(); ++r) {
    if (peers_[r].never) continue;
    ++c.members;
    c.said += said[r];
    c.dead += peers_[r].dead;
    c.all_others = c.all_others && (peers_[r].dead || said[r]);
  }
  return c;
}

Answers Roll::heard() const {
  Answers all(peers_.size());
  for (size_t r = 0; r < peers_.size(); ++r) all[r] = !peers_[r].suspected && peers_[r].votes();
  return all;
}

// Members that are suspected may be reachable again, as after a cut.
bool Roll::awaits(const Answers& said, double waited, double grace, double retry) const {
  for (size_t r = 0; r < peers_.size(); ++r)
    if (!said[r] && peers_[r].votes() && waited < (peers_[r].suspected ? retry : grace)) return true;
  return false;
}

}  // namespace skein::comm
