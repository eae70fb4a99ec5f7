// A ring of snapshots whose memory is used again.
#include "optim/whole_step.h"

#include <algorithm>

namespace skein::optim {

int states_kept(const StrategyRow& row, int workers) {
  if (workers == 1 || row.apart == Apart::kAny) return 0;
  if (workers == 2) return 1;
  return row.apart == Apart::kOne ? 2 : 4;
}

Shared shared_states(Strategy& s) {
  InRounds* const rounds = dynamic_cast<InRounds*>(&s);
  return rounds ? rounds->shared() : Shared();
}

void WholeStep::run(int64_t k, const std::function<void()>& step) {
  if (!knows(k) && (past_.empty() || is_shared(k))) remember(k);
  try {
    step();
  } catch (...) {
    if (knows(k)) go_back(k);
    throw;
  }
}

// What was under way at the latest state has arrived when the next one is due.
int64_t WholeStep::settled(int64_t k) {
  if (shared_.arrived && !past_.empty()) past_.back().state.complete(shared_.arrived);
  const size_t known = past_.size() + (is_shared(k) && !knows(k));
  if (known <= lag()) return past_.empty() ? k : past_.front().step;
  const size_t at = known - 1 - lag();
  return at < past_.size() ? past_[at].step : k;
}

int64_t WholeStep::recover(int64_t k) {
  if (kept_ == 0 || knows(k)) return k;
  if (past_.empty() || is_shared(k)) return remember(k), k;
  const int64_t last = settled(k);
  return go_back(last), last;
}

void WholeStep::remember(int64_t k) {
  if (kept_ == 0) return;
  if (past_.size() == most()) {
    past_.push_back(std::move(past_.front()));
    past_.pop_front();
  } else {
    past_.emplace_back();
  }
  past_.back().step = k;
  past_.back().state.take(state_);
}

bool WholeStep::knows(int64_t k) const {
  return std::any_of(past_.begin(), past_.end(), [k](const Past& p) { return p.step == k; });
}

int64_t WholeStep::oldest(int64_t otherwise) const { return past_.empty() ? otherwise : past_.front().step; }

void WholeStep::go_back(int64_t k) {
  const auto at = std::find_if(past_.begin(), past_.end(), [k](const Past& p) { return p.step == k; });
  CHECK(at != past_.end(), "no state of step", k);
  at->state.restore(state_);
  past_.erase(at + 1, past_.end());
}

}  // namespace skein::optim
