// Attempts, and worker 0's verdict on each: done, or which workers try again.
#include "apps/survival/survivors.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "comm/communicator/notices.h"

namespace skein::apps {
namespace {

constexpr comm::Tag kVerdict = comm::kOwnTags - 2;  // the members of the next attempt; none if it is done

bool holds(const std::vector<int>& all, int one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

bool may_write(const std::vector<int>& members, const std::vector<bool>& ended) {
  size_t may_live = 0, lowest = ended.size();
  for (size_t w = ended.size(); w-- > 0;)
    if (!ended[w]) ++may_live, lowest = w;
  return 2 * members.size() > may_live || (2 * members.size() == may_live && size_t(members[0]) == lowest);
}

Survivors::Survivors(comm::Communicator& everybody, comm::Communicator& hub, bool survives)
    : everybody_(everybody),
      hub_(hub),
      survives_(survives),
      members_(size_t(everybody.size())),
      line_(everybody.twin(false)) {
  std::iota(members_.begin(), members_.end(), 0);
  // Worker 0 may be many steps behind; only its loss ends a wait for its verdict.
  line_->set_deadline(comm::kForever);
}

std::vector<int> Survivors::lost() const {
  std::vector<int> out;
  for (int w = 0; w < everybody_.size(); ++w)
    if (!holds(members_, w)) out.push_back(w);
  return out;
}

void Survivors::meet(const std::function<void()>& f) {
  while (!attempt(f)) again(false);
}

// Worker 0 is done when all have reported, and the others when it says so, so that no loss
// in between goes unnoticed.
void Survivors::wholly(const std::function<void()>& f) {
  if (!survives_) return f();
  while (again(attempt([&] {
    f();
    comm().gather(Tensor::zeros({1}), 0);
  }))) {}
}

// Returns false if a loss has interrupted f. Worker 0 learns which workers this one misses, in case only this
// one cannot reach them; workers that wait for one that only worker 0 misses will be told.
bool Survivors::attempt(const std::function<void()>& f) {
  try {
    if (std::exchange(told_, changes()) != changes() && when_fewer_) when_fewer_();
    f();
    return true;
  } catch (const comm::PeerLost&) {
    if (!survives_) throw;
    const comm::Membership& all = everybody_.membership();
    if (first() ? left().empty() : !all.alive(everybody_.world_rank(0))) throw;
    if (!first()) comm::give_up(everybody_, all.dead(), {0});
  } catch (const comm::Timeout&) {
    if (!survives_ || first()) throw;
  }
  return false;
}

// Whether there will be another attempt; comm() then connects those that are left.
bool Survivors::again(bool done) {
  const std::vector<int> next = !first() ? hear() : done ? std::vector<int>() : left();
  if (first()) tell(next);
  if (next.empty()) return false;
  members_ = next;
  groups_.push_back(everybody_.group(members_));
  return true;
}

// The members that are left; none if that is all of them.
std::vector<int> Survivors::left() const {
  std::vector<int> out;
  for (int w : members_)
    if (everybody_.membership().alive(everybody_.world_rank(w))) out.push_back(w);
  return out.size() == members_.size() ? std::vector<int>() : out;
}

void Survivors::tell(const std::vector<int>& next) {
  std::vector<comm::Rank> gone;
  for (int w : members_)
    if (!next.empty() && !holds(next, w)) gone.push_back(everybody_.world_rank(w));
  if (!gone.empty()) comm::give_up(everybody_, gone, members_);
  const Tensor words = Tensor::of<int32_t>({int64_t(next.size())}, {next.begin(), next.end()});
  for (int w : next.empty() ? members_ : next) try {
      if (w != 0) line_->push(w, kVerdict, verdicts_, 1, words);
    } catch (const comm::PeerLost&) {  // the next attempt will find it lost
    }
  ++verdicts_;
}

std::vector<int> Survivors::hear() {
  const comm::Message m = line_->take(0, kVerdict, verdicts_++);
  return {m.payload.data<int32_t>(), m.payload.data<int32_t>() + m.payload.size()};
}

}  // namespace skein::apps
