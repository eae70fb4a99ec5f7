// Membership: a table under a lock. Whether any rank is lost, which every wait asks, is one atomic.
#include "comm/membership/membership.h"

namespace skein::comm {

namespace {
constexpr auto kGraceAfterError = std::chrono::seconds(2);
}

void Membership::lose(Rank r, const std::string& why, bool ended) {
  std::lock_guard lock(mutex_);
  if (state_.at(size_t(r)) != State::kAlive) return;
  state_[size_t(r)] = State::kLost;
  why_[size_t(r)] = why;
  ended_[size_t(r)] = ended;
  ++lost_;
}

void Membership::leave(Rank r) {
  std::lock_guard lock(mutex_);
  if (state_.at(size_t(r)) != State::kAlive) return;
  state_[size_t(r)] = State::kLeft;
  ended_[size_t(r)] = true;
  why_[size_t(r)] = "it has ended its work";
}

void Membership::fail(Rank r) {
  leave(r);
  std::lock_guard lock(mutex_);
  if (state_[size_t(r)] != State::kLeft || failed_at_[size_t(r)] != Clock::time_point()) return;
  failed_at_[size_t(r)] = Clock::now();
  why_[size_t(r)] = "it has ended with an error";
  ++failed_;
}

void Membership::settle() {
  if (failed_ == 0) return;
  std::lock_guard lock(mutex_);
  for (size_t r = 0; r < state_.size(); ++r) {
    if (state_[r] != State::kLeft || failed_at_[r] == Clock::time_point()) continue;
    if (Clock::now() - failed_at_[r] < kGraceAfterError) continue;
    state_[r] = State::kLost;
    ++lost_, --failed_;
  }
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

bool Membership::ended(Rank r) const {
  std::lock_guard lock(mutex_);
  return ended_.at(size_t(r));
}

std::string Membership::why(Rank r) const {
  std::lock_guard lock(mutex_);
  return why_.at(size_t(r));
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
  if (s == State::kLeft) throw PeerLost(r, text("rank ", r, " has gone: ", why_[size_t(r)]));
}

}  // namespace skein::comm
