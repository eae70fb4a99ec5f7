// Stopping: the workers of a training decide together at which step it stops.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "apps/train/leaving.h"
#include "comm/communicator/words.h"

namespace skein::apps {

// Each worker may be asked to stop (Run::stop) at any time; all stop at the same step.
class Stopping {
 public:
  // A number that the workers tell each other when they ask, and what each does with those of all,
  // in their order.
  struct Beside {
    std::function<double()> tell;
    std::function<void(const std::vector<double>&)> hear;
  };
  // `settle` completes what this worker's algorithm has in flight; collective (Strategy::settle).
  Stopping(Run&, Beside, std::function<void()> settle);
  Stopping(Run&, std::function<void()> settle);

  void begin();  // before the first step
  // Called between two steps: whether training stops here. The answer is the same on every worker
  // at the same step.
  bool here();
  // Call it before anything that the workers do together. Returns true when all of them are at the same step,
  // however long that takes, because a slow worker is not a lost one. Returns false if others are ahead of
  // this worker, which then continues to the step at which all stop.
  bool meet();
  void meet_again() { met_at_ = -1, question_.reset(); }  // the set of workers has changed
  bool agreed() const { return stop_at_ >= 0; }           // asynchronous workers: the step is known

 private:
  void ask(bool asked);
  bool answer();
  bool here_apart();
  void tell_others();
  bool settle_at_one_step();

  Run& run_;
  const std::function<void()> settle_;
  const Beside beside_;
  Leaving leaving_;
  std::optional<comm::Gathering> question_;  // on its way
  bool leaves_ = false;                      // what this worker has told of itself in it
  int64_t next_question_ = 0;  // at this step the workers have its answer, and ask each other again
  int64_t asked_step_ = 0;     // of the last question
  double asked_at_ = 0;        // its time, moved on by what was waited for its answer
  double interval_ = 0;        // seconds until the next one
  int64_t stop_at_ = -1;       // asynchronous workers stop at this step; negative: not decided
  int64_t met_at_ = -1;        // the last step at which they met
};

}  // namespace skein::apps
