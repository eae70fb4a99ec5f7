// Membership: a table under a lock; the hot question, "is anybody lost?", is one atomic.
#include "comm/membership.h"

namespace skein::comm {

void Membership::lose(Rank r, const std::string& why) {
  std::lock_guard lock(mutex_);
  if (state_.at(size_t(r)) != State::kAlive) return;
  state_[size_t(r)] = State::kLost;
  why_[size_t(r)] = why;
  ++lost_;
}

void Membership::leave(Rank r) {
  std::lock_guard lock(mutex_);
  if (state_.at(size_t(r)) == State::kAlive) state_[size_t(r)] = State::kLeft;
}

bool Membership::alive(Rank r) const {
  std::lock_guard lock(mutex_);
  return state_.at(size_t(r)) == State::kAlive;
}

bool Membership::lost(Rank r) const {
  if (!any_lost()) return false;
  std::lock_guard lock(mutex_);
  return state_.at(size_t(r)) == State::kLost;
}

std::vector<Rank> Membership::dead() const {
  std::lock_guard lock(mutex_);
  std::vector<Rank> out;
  for (size_t r = 0; r < state_.size(); ++r)
    if (state_[r] == State::kLost) out.push_back(Rank(r));
  return out;
}

void Membership::require(Rank r) const {
  std::lock_guard lock(mutex_);
  const State s = state_.at(size_t(r));
  if (s == State::kLost) throw PeerLost(r, text("rank ", r, " is lost: ", why_[size_t(r)]));
  if (s == State::kLeft) throw PeerLost(r, text("rank ", r, " has ended its work and left"));
}

}  // namespace skein::comm
