// Membership: a table under a lock. Whether any rank is lost, which every wait asks, is one atomic.
#include "comm/membership/membership.h"

namespace skein::comm {

namespace {
constexpr auto kGraceAfterError = std::chrono::seconds(2);
}

void Membership::lose(Rank r, const std::string& why, bool ended, std::optional<double> silent) {
  std::lock_guard lock(mutex_);
  if (state_.at(size_t(r)) != State::kAlive) return;
  state_[size_t(r)] = State::kLost;
  fates_[r] = {.why = why, .ended = ended, .silent = silent};
  ++lost_;
}

void Membership::leave(Rank r) {
  std::lock_guard lock(mutex_);
  if (state_.at(size_t(r)) != State::kAlive) return;
  state_[size_t(r)] = State::kLeft;
  fates_[r] = {.why = "it has ended its work", .ended = true};
}

void Membership::fail(Rank r) {
  leave(r);
  std::lock_guard lock(mutex_);
  if (state_[size_t(r)] != State::kLeft || fates_[r].failed_at != Clock::time_point()) return;
  fates_[r].failed_at = Clock::now();
  fates_[r].why = "it has ended with an error";
  ++failed_;
}

void Membership::settle() {
  if (failed_ == 0) return;
  std::lock_guard lock(mutex_);
  for (auto& [r, fate] : fates_) {
    if (state_[size_t(r)] != State::kLeft || fate.failed_at == Clock::time_point()) continue;
    if (Clock::now() - fate.failed_at < kGraceAfterError) continue;
    state_[size_t(r)] = State::kLost;
    fate.silent = seconds_since(fate.failed_at);
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
  const auto f = fates_.find(r);
  return f != fates_.end() && f->second.ended;
}

std::string Membership::why(Rank r) const {
  std::lock_guard lock(mutex_);
  const auto f = fates_.find(r);
  return f == fates_.end() ? std::string() : f->second.why;
}

std::optional<double> Membership::silent_for(Rank r) const {
  std::lock_guard lock(mutex_);
  const auto f = fates_.find(r);
  return f == fates_.end() ? std::nullopt : f->second.silent;
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
  if (s == State::kAlive) return;
  throw PeerLost(r, text("rank ", r, s == State::kLost ? " is lost: " : " has gone: ", fates_.at(r).why));
}

}  // namespace skein::comm
