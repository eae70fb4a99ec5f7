// Record: the record of a run while it trains: metrics.jsonl, TensorBoard's events and the console.
#pragma once
#include <optional>

#include "apps/train/learning.h"
#include "apps/train/over_workers.h"
#include "apps/train/worker_events.h"
#include "comm/communicator/words.h"

namespace skein::apps {

class Record {
 public:
  Record(Run&, Batches&, Learning&);

  // Worker 0 opens the files, which continue those of an earlier run or are new. Throws BadFile.
  void open(bool continues);
  bool is_open() const { return log_.is_open(); }
  void begin();  // writes the first event and starts the clock

  // Call it after a step: updates the console and, every --log-every steps, makes an event, which is
  // written when the numbers of all workers have come. Throws Error if the loss is not a number.
  void end_step();
  void flush();  // writes the event whose numbers are on their way, if any; collective among those in step
  void read_losses();         // reads all losses; throws Error if one is not a number
  void refuse_bad_numbers();  // throws Error on all workers if loss or x of any is not finite; collective

  SeenByAll epoch();  // what all workers measured in this epoch; call it after read_losses(); collective
  void close_epoch(const SeenByAll&, const std::string& scores);  // `scores` ends the line on the console
  void write_score(std::optional<EvalEvent>);                     // does nothing without one

  WorkerEvents& workers() { return workers_; }
  void continue_with(const Legacy&, double weight_lost);  // as that of WorkerEvents

  void take_scale(bool of_all);  // reads the loss scale that was sent last; collective if `of_all`
  void describe(Summary&) const;
  void visit(Archive&);

 private:
  Seen mine(const Sums&, const Seconds& until) const;  // since the last step event
  struct Sent {
    int64_t step;
    Seconds spent;  // when it ended
  };
  void ask_others();
  void take(const Sent&);
  void write_step();
  void note_world(const Simulated&);
  void refresh_report();
  [[noreturn]] void refuse_bad_loss(int64_t step) const;

  Run& run_;
  Batches& batches_;
  Learning& learning_;
  EventLog log_;  // open on worker 0
  WorkerEvents workers_;
  Moment moment_;
  std::optional<Scaling> scaling_;  // as of the last recorded step
  std::optional<Sent> sent_;        // a step to log whose numbers are still in flight from the device
  // One whose numbers are still in flight from the others.
  struct Asked {
    StepEvent event;
    double spent;  // seconds since the event before
    std::optional<comm::Gathering> told, scales;
    SeenByAll seen;  // where the others are not asked
  };
  std::optional<Asked> asked_;
  Seconds at_last_event_;
  double report_due_ = 0;
  int64_t steps_at_first_ = -1;  // before the first step of a simulation, as is the next
  double real_at_first_ = 0;
  double training_at_epoch_ = 0;     // seconds of training when the epoch began
  int64_t unreadable_at_epoch_ = 0;  // images skipped until then
};

}  // namespace skein::apps
