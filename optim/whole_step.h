// WholeStep: a step that throws leaves the state as it was before, and the last few steps can be taken back.
#pragma once
#include <deque>

#include "optim/snapshot.h"
#include "optim/strategy.h"

namespace skein::optim {

// How many of the latest states a worker keeps, each as it was before a step:
//   0  if nothing is ever taken back: a worker that is alone loses no peer, and asynchronous workers end as
//      they are, since others may have used what a broken step has sent
//   1  of two workers, since one that loses the other ends at the step that it has reached itself
//   2  where every step is an exchange among all workers, since none can be more than one step ahead
//   4  where workers gossip, or take steps alone between two exchanges: those that do not hear from a lost
//      worker at every step go on for a few. Workers that are further apart when one is lost write no new
//      checkpoint.
int states_kept(const StrategyRow&, int workers);

// Keeps the promise that a step is done as a whole or not at all, so that a strategy may throw at any time
// while it iterates. It copies the state once before every step, into memory that it uses again.
class WholeStep {
 public:
  // `kept`: how many states; with 0 nothing is copied, and a step that throws remains half done.
  WholeStep(int kept, Walk state) : kept_(size_t(kept)), state_(std::move(state)) {}

  // Step k. If it throws, all that the walk names is put back before the exception goes on. What else is run before
  // step k is taken back with it.
  void run(int64_t k, const std::function<void()>& step);

  void remember(int64_t k);  // the present state is the one before step k
  bool knows(int64_t k) const;
  int64_t oldest(int64_t otherwise) const;  // of the steps before which the state is known, if there is one
  void go_back(int64_t k);  // to the state before step k; CHECKs that it is known, and forgets later ones

 private:
  struct Past {
    int64_t step;
    Snapshot state;
  };
  const size_t kept_;
  const Walk state_;
  std::deque<Past> past_;
};

}  // namespace skein::optim
