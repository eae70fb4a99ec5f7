// Rollback: what is left of a training that ends because a worker is lost.
#pragma once
#include "apps/train/outcome.h"
#include "apps/train/record.h"
#include "apps/train/saving.h"
#include "apps/train/step_back.h"

namespace skein::apps {

// Workers in step remember the states of their last few steps. When one of them is lost, the others may be a step
// apart: they go back to the last step that all of them have taken, and write a checkpoint of it, if they are the
// side that may (docs/checkpoints.md). Asynchronous workers end as they are.
class Rollback {
 public:
  Rollback(Run&, Record&, Saving&, Traces&, Walk state);

  void before_step();
  void after_step() { in_step_ = false; }

  // After an error of communication, `why`, that no action survives. Throws Error if all workers are alive.
  Outcome end(const std::string& why);

 private:
  bool remembers() const { return !run_.asynchronous && run_.comm().size() > 1; }
  std::vector<int> alive() const;
  Outcome end_among(const std::vector<int>& members);
  struct Common {
    int64_t step;             // taken by all
    std::vector<bool> ended;  // by worker: any of them has seen its end
  };
  Common agree(comm::Communicator& living) const;
  bool all_know(comm::Communicator& living, int64_t step) const;
  Outcome outcome(const std::vector<int>& members, const std::string& rest) const;

  Run& run_;
  Record& record_;
  Saving& saving_;
  Traces& traces_;
  const Walk state_;
  StepBack past_{4};
  bool in_step_ = false;
};

}  // namespace skein::apps
