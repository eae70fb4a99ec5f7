// WorkerEvents: what happens to the workers of a run, as events, lines and figures: losses, changes of the
// membership, new shares of the batch.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/report/event_log.h"
#include "apps/survival/legacy.h"
#include "apps/train/run.h"

namespace skein::apps {

class WorkerEvents {
 public:
  WorkerEvents(Run&, EventLog&);

  void begin();  // writes the losses that were noted before the run's first event

  // The membership has changed: the last of the legacy's changes is complete with the next step.
  // `weight_lost`: as ChangeEvent's.
  void continue_with(const Legacy&, double weight_lost);
  void end_step();  // writes the change that this step completes, if any
  const std::vector<ChangeEvent>& changes() const { return changes_; }
  int at_first() const { return at_first_; }  // how many workers the run began with

  // The batch is divided again from the next step on, by these speeds if any are given. Writes an event
  // and a line.
  void note_shares(const std::vector<int64_t>& shares, const std::vector<double>& speeds,
                   const std::string& why);
  void note_losses();  // writes an event and a line for each newly lost worker
  const std::vector<LostEvent>& lost() const { return lost_; }

  void describe(WorkerFigures&) const;

 private:
  Run& run_;
  EventLog& log_;
  int at_first_;
  std::vector<LostEvent> lost_;
  std::optional<SharesEvent> shares_;  // the latest
  std::vector<ChangeEvent> changes_;
  std::optional<double> changing_since_;  // clock_seconds(), if the last change is not complete
};

}  // namespace skein::apps
