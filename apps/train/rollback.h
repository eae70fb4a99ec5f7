// Rollback: what is left of a training that ends because a worker is lost.
#pragma once
#include "apps/train/learning.h"
#include "apps/train/ledger.h"
#include "apps/train/outcome.h"
#include "apps/train/saving.h"
#include "apps/train/used_images.h"
#include "apps/train/worker_events.h"
#include "comm/membership/view.h"
#include "optim/whole_step.h"

namespace skein::apps {

// Workers in step keep the states of their last few steps (optim/whole_step.h). When one of them is lost, the
// others may be a few steps apart: they go back to the last step that all have taken, and write a checkpoint
// of it if they are the side that may (docs/checkpoints.md). Asynchronous workers end as they are.
class Rollback {
 public:
  Rollback(Run&, WorkerEvents&, Saving&, Traces&, Learning&, Walk state);

  // Runs `f` as the next step. If it throws, the state of workers in step is as before; with a council it
  // may be half changed, and leave_epoch() or end() must follow. Throws EpochEnds if the membership has
  // begun to change.
  void step(const std::function<void()>& f);
  // Runs something that changes the state like a step but counts as none.
  void keep(const std::function<void()>& f) { steps_.run(run_.k, f); }
  // Runs f between two steps. If the membership changes meanwhile, some workers may have run it and others
  // not, so with a council it is kept like a step.
  void between_steps(const std::function<void()>& f) { run_.setup.place.council ? keep(f) : f(); }
  // The membership changes: returns what this worker takes along into the next epoch. If the members do not
  // agree in time, it ends the training as end() does. Throws GivenUp, RunEnded.
  Outcome leave_epoch();

  // Ends the training after the communication error `why`. Throws Error if all workers are alive.
  Outcome end(const std::string& why);

 private:
  std::vector<int> alive() const;
  Outcome end_among(const std::vector<int>& members);
  struct Common {
    int64_t step;             // taken by all
    std::vector<bool> ended;  // by worker: whether any of them has seen its end
  };
  Common agree(comm::Communicator& living) const;
  ChangeEvent change(const comm::View& next) const;
  std::map<comm::MemberId, double> silences() const;
  bool all_know(comm::Communicator& living, int64_t step) const;
  Outcome outcome(const std::vector<int>& members, const std::string& rest) const;

  Run& run_;
  WorkerEvents& workers_;
  Saving& saving_;
  Traces& traces_;
  const Walk state_;
  optim::WholeStep steps_;
  int64_t reached_ = 0;  // the most steps taken; some may have been taken back since
  Ledger ledger_;
  UsedImages used_;
};

}  // namespace skein::apps
