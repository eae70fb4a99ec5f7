// StepBack: the states of the last few steps, for workers that lost a peer and have to end at one common
// step.
#pragma once
#include <deque>

#include "optim/snapshot.h"

namespace skein::apps {

class StepBack {
 public:
  explicit StepBack(int depth) : depth_(size_t(depth)) {}
  // The state before step k.
  void remember(int64_t k, const optim::Walk&);
  bool knows(int64_t k) const;
  void restore(int64_t k, const optim::Walk&);  // CHECKs that it knows

 private:
  struct Past {
    int64_t step;
    optim::Snapshot state;
  };
  const size_t depth_;
  std::deque<Past> past_;
};

}  // namespace skein::apps
