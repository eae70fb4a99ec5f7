// Writes the events of a run for TensorBoard: the scalars and their names.
#pragma once
#include "apps/report/event_file.h"
#include "apps/report/metrics.h"

namespace skein::apps {

class Tensorboard {
 public:
  // Makes a new file in the run's directory, so that `tensorboard --logdir runs` names runs by their
  // directories. resumed_step < 0 means a new run; otherwise later events than that step in other
  // files no longer count.
  explicit Tensorboard(const std::string& dir, int64_t resumed_step = -1);

  void write(const RunEvent&);
  void write(const StepEvent&);
  void write(const EpochEvent&);
  void write(const EvalEvent&);

 private:
  EventFile file_;
};

}  // namespace skein::apps
