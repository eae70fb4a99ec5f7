// The books of leases.
#include "optim/leaders/lease.h"

#include <algorithm>

namespace skein::optim::lease {

namespace {
// A share of what is left that shrinks with it: few questions while there is much, single steps
// towards the end.
int64_t portion(int64_t left, int clients) { return (left + 2 * clients - 1) / (2 * clients); }
}  // namespace

void Standing::visit(Archive& a) { a("left", left), a("rounds", rounds), a("heard", heard); }

CycleBook::CycleBook(int groups, int64_t steps, int64_t every)
    : groups_(groups), steps_(steps), every_(every), left_(steps) {
  CHECK(groups > 0 && steps > 0 && every > 0, groups, steps, every);
}

void CycleBook::stand(const Standing& s) {
  CHECK(s.left <= steps_, s.left, steps_);
  left_ = s.left < 0 ? steps_ : s.left;
  rounds_ = s.rounds;
}

Answer CycleBook::lease() {
  const int64_t n = portion(left_, groups_);
  left_ -= n;
  return {Next::kSteps, n};
}

std::vector<Reply> CycleBook::hear(int group, const Word& w) {
  std::vector<Reply> due;
  left_ += w.returned;
  if (w.idle)
    idle_.push_back({group, w.wants});
  else
    due.push_back({group, left_ > 0 ? lease() : Answer{}});
  for (auto i = idle_.begin(); left_ > 0 && i != idle_.end();) {
    if (i->wants) due.push_back({i->group, lease()});
    i = i->wants ? idle_.erase(i) : std::next(i);
  }
  if (int(idle_.size()) < groups_) return due;
  Answer all{.next = Next::kMet, .standing = {left_, rounds_}};
  if (left_ == 0) {
    left_ = steps_;
    all = {++rounds_ % every_ == 0 ? Next::kGlobalRound : Next::kGroupRound};
  }
  for (const Idle& i : idle_) due.push_back({i.group, all});
  idle_.clear();
  return due;
}

GroupBook::Out GroupBook::hear(int worker, const Word& w) {
  pool_ += w.returned;
  stepped_ = stepped_ || !w.again;
  if (w.wants)
    waiting_.push_back(worker);
  else
    ++meeting_;
  return serve();
}

GroupBook::Out GroupBook::hear(const Answer& a) {
  CHECK(asking_, "an answer to nothing");
  asking_ = false;
  exhausted_ = a.next == Next::kNoneLeft;
  if (a.next != Next::kSteps && !exhausted_) return tell_all(a);
  pool_ += a.steps;
  return serve();
}

GroupBook::Out GroupBook::serve() {
  Out out;
  for (; pool_ > 0 && !waiting_.empty(); waiting_.pop_front()) {
    const int64_t n = portion(pool_, workers_);
    pool_ -= n;
    out.replies.push_back({waiting_.front(), {Next::kSteps, n}});
  }
  const bool all_in = int(waiting_.size()) + meeting_ == workers_;
  if (asking_ || (waiting_.empty() && !all_in)) return out;
  if (!waiting_.empty() && !exhausted_)
    out.upward = Word{};
  else if (all_in)
    out.upward = Word{
        .idle = true, .wants = !waiting_.empty(), .returned = std::exchange(pool_, 0), .again = !stepped_};
  asking_ = out.upward.has_value();
  return out;
}

GroupBook::Out GroupBook::tell_all(const Answer& a) {
  CHECK(int(waiting_.size()) + meeting_ == workers_ && pool_ == 0, "a round while a worker has steps");
  Out out;
  for (int w = 0; w < workers_; ++w) out.replies.push_back({w, a});
  waiting_.clear();
  meeting_ = 0;
  stepped_ = stepped_ && a.next != Next::kMet;
  return out;
}

}  // namespace skein::optim::lease
