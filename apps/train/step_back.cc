// A ring of snapshots whose memory is used again.
#include "apps/train/step_back.h"

#include <algorithm>

namespace skein::apps {

void StepBack::remember(int64_t k, const optim::Walk& walk) {
  if (past_.size() == depth_) {
    past_.push_back(std::move(past_.front()));
    past_.pop_front();
  } else {
    past_.emplace_back();
  }
  past_.back().step = k;
  past_.back().state.take(walk);
}

bool StepBack::knows(int64_t k) const {
  return std::any_of(past_.begin(), past_.end(), [k](const Past& p) { return p.step == k; });
}

void StepBack::restore(int64_t k, const optim::Walk& walk) {
  const auto at = std::find_if(past_.begin(), past_.end(), [k](const Past& p) { return p.step == k; });
  CHECK(at != past_.end(), "no state of step", k);
  at->state.restore(walk);
}

}  // namespace skein::apps
