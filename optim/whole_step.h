// WholeStep: a step that throws leaves the state as it was before, and the last few steps can be taken back.
#pragma once
#include <algorithm>
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

// The states to which the workers of an elastic run can go back: those before steps at which the others have
// all that this worker has learned, or will have it when what travels has arrived. At least two are kept,
// because one worker may have completed an exchange in which another still is; if something travels three,
// because it arrives a round later.
struct Shared {
  std::function<bool(int64_t k)> is;  // the state before step k; empty: any state is
  Walk arrived;  // visits what arrived in the last step, for Snapshot::complete(); empty: nothing travels
};

// A strategy whose workers learn by themselves between two exchanges.
class InRounds {
 public:
  virtual ~InRounds() = default;
  virtual Shared shared() = 0;
};
Shared shared_states(Strategy&);  // of an InRounds; of others all states are

// Keeps the promise that a step is done as a whole or not at all, so that a strategy may throw at any time
// while it iterates. It copies the state once before every step, into memory that it uses again. With Shared
// it copies shared states only, and after a step that throws the caller has to go back.
class WholeStep {
 public:
  // `kept`: how many states; with 0 nothing is copied, and a step that throws remains half done.
  WholeStep(int kept, Walk state, Shared shared = {})
      : kept_(size_t(kept)), state_(std::move(state)), shared_(std::move(shared)) {}

  // Step k. If it throws, all that the walk names is put back before the exception goes on. What else is run
  // before step k is taken back with it.
  void run(int64_t k, const std::function<void()>& step);
  // After step k - 1: the step to whose beginning the others can go on from without this worker.
  int64_t settled(int64_t k);

  // After an error in step k, or between steps k - 1 and k: makes the state whole, and returns the step
  // before which it is.
  int64_t recover(int64_t k);

  void remember(int64_t k);  // the present state is the one before step k
  bool knows(int64_t k) const;
  int64_t oldest(int64_t otherwise) const;  // of the steps before which the state is known, if there is one
  void go_back(int64_t k);  // to the state before step k; CHECKs that it is known, and forgets later ones

 private:
  struct Past {
    int64_t step;
    Snapshot state;
  };
  bool is_shared(int64_t k) const { return !shared_.is || shared_.is(k); }
  size_t lag() const { return bool(shared_.arrived); }
  size_t most() const { return lag() ? std::max<size_t>(kept_, 3) : kept_; }
  const size_t kept_;
  const Walk state_;
  const Shared shared_;
  std::deque<Past> past_;
};

}  // namespace skein::optim
