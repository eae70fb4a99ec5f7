// Record: the record of a run while it trains: metrics.jsonl, TensorBoard's events and the console.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "apps/report/metrics.h"
#include "apps/report/tensorboard.h"
#include "apps/survival/legacy.h"
#include "apps/train/learning.h"
#include "apps/train/over_workers.h"

namespace skein::apps {

class Record {
 public:
  Record(Run&, Batches&, Learning&);

  // Worker 0 opens the files, which continue those of an earlier run or are new. Throws BadFile.
  void open(bool continues);
  bool is_open() const { return log_ != nullptr; }
  void begin();            // writes the first event and starts the clock
  double elapsed() const;  // seconds since training began, including earlier runs of it

  // Call it after a step: updates the console and, every --log-every steps, writes an event. Collective if
  // workers are in step. Throws Error if the loss is not a number.
  void end_step();
  void flush();  // logs the step whose numbers are still in flight, if any; collective if workers are in step
  void read_losses();         // reads all losses; throws Error if one is not a number
  void refuse_bad_numbers();  // throws Error on all workers if loss or x of any is not finite; collective

  SeenByAll epoch();  // what all workers measured in this epoch; call it after read_losses(); collective
  void close_epoch(const SeenByAll&, const std::string& scores);  // `scores` ends the line on the console
  void write_score(std::optional<EvalEvent>);                     // does nothing without one

  // The membership has changed: the last of `changes` is complete with the next step.
  // `weight_lost`: as ChangeEvent's.
  void continue_with(const Legacy&, double weight_lost);
  const std::vector<ChangeEvent>& changes() const { return changes_; }
  int workers_at_first() const { return moment_.workers_at_first; }

  // The batch is divided again from the next step on, by these speeds if any are given. Writes an event
  // and a line.
  void note_shares(const std::vector<int64_t>& shares, const std::vector<double>& speeds,
                   const std::string& why);
  void note_losses();  // writes an event and a line for each newly lost worker
  const std::vector<LostEvent>& lost() const { return lost_; }

  void take_scale(bool of_all);  // reads the loss scale that was sent last; collective if `of_all`
  void describe(Summary&) const;
  void visit(Archive&);

 private:
  template <class Event>
  void write(const Event& e) {
    if (log_) log_->write(e);
    if (board_) board_->write(e);
  }
  Seen mine(const Sums&, const Seconds& until) const;  // since the last step event
  void log_step(int64_t step, const Seconds& spent);
  void note_world(const Simulated&);
  void refresh_report();
  void complete_change();
  [[noreturn]] void refuse_bad_loss(int64_t step) const;

  Run& run_;
  Batches& batches_;
  Learning& learning_;
  std::unique_ptr<MetricsLog> log_;     // on worker 0, as is the next
  std::unique_ptr<Tensorboard> board_;  // null with --no-tensorboard
  Moment moment_;
  std::vector<LostEvent> lost_;
  std::optional<SharesEvent> shares_;  // the latest
  std::vector<ChangeEvent> changes_;
  std::optional<double> changing_since_;  // clock_seconds(), if the last change is not complete
  std::optional<Scaling> scaling_;        // as of the last recorded step
  struct Sent {
    int64_t step;
    Seconds spent;  // when it ended
  };
  std::optional<Sent> sent_;  // a step to log whose numbers are still in flight from the device
  Seconds at_last_event_;
  double started_ = 0, earlier_seconds_ = 0;
  double report_due_ = 0;
  int64_t steps_at_first_ = -1;  // before the first step of a simulation, as is the next
  double real_at_first_ = 0;
  double training_at_epoch_ = 0;     // seconds of training when the epoch began
  int64_t unreadable_at_epoch_ = 0;  // images skipped until then
};

}  // namespace skein::apps
