// Record: what a run says about itself while it trains: metrics.jsonl, TensorBoard's events and the console.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "apps/report/metrics.h"
#include "apps/report/tensorboard.h"
#include "apps/train/learning.h"
#include "apps/train/over_workers.h"

namespace skein::apps {

class Record {
 public:
  Record(Run&, Batches&, Learning&);

  // Worker 0: the files, which continue those of an earlier run or are new ones. Throws BadFile.
  void open(bool continues);
  bool is_open() const { return log_ != nullptr; }
  void begin();            // the first event; the clock starts
  double elapsed() const;  // seconds since training began, earlier runs of it included

  // After a step: the console, and every --log-every steps an event. Collective where workers are in step.
  // Throws Error if the loss is not a number.
  void end_step();
  void flush();        // logs the step whose numbers are still on their way, if any; collective likewise
  void read_losses();  // all there are; throws Error if one is not a number
  void refuse_bad_numbers();  // throws Error on all workers if loss or x of any is not finite; collective

  SeenByAll
  epoch();  // the training images of this epoch as all have seen them; after read_losses(); collective
  void close_epoch(const SeenByAll&, const std::string& scores);  // `scores` ends the line on the console
  void write_score(std::optional<EvalEvent>);                     // if there is one

  void note_losses();  // an event and a line for each worker that is newly lost
  const std::vector<LostEvent>& lost() const { return lost_; }

  void take_scale(bool of_all);  // the loss scale as it was sent last; collective where `of_all`
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
  void refresh_report();
  [[noreturn]] void refuse_bad_loss(int64_t step) const;

  Run& run_;
  Batches& batches_;
  Learning& learning_;
  std::unique_ptr<MetricsLog> log_;     // of worker 0, as the next
  std::unique_ptr<Tensorboard> board_;  // null with --no-tensorboard
  Moment moment_;
  std::vector<LostEvent> lost_;
  std::optional<Scaling> scaling_;  // as of the last step that was recorded
  struct Sent {
    int64_t step;
    Seconds spent;  // when it ended
  };
  std::optional<Sent> sent_;  // a step to be logged, whose numbers are on their way from the device
  Seconds at_last_event_;
  double started_ = 0, earlier_seconds_ = 0;
  double report_due_ = 0;
  double training_at_epoch_ = 0;     // seconds of training when the epoch began
  int64_t unreadable_at_epoch_ = 0;  // images skipped until then
};

}  // namespace skein::apps
