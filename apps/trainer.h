// Trainer: builds a Worker from model, loader and rule, and runs the strategy over the steps of a training.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/best_model.h"
#include "apps/blending.h"
#include "apps/checkpoint.h"
#include "apps/consensus_model.h"
#include "apps/ema.h"
#include "apps/evaluate.h"
#include "apps/living.h"
#include "apps/meters.h"
#include "apps/metrics.h"
#include "apps/odd_files.h"
#include "apps/progress.h"
#include "apps/setup.h"
#include "apps/step_back.h"
#include "apps/step_graphs.h"
#include "apps/tensorboard.h"
#include "engine/loss_scale.h"
#include "optim/schedule.h"
#include "optim/strategy.h"

namespace skein::apps {

// Seconds by kind of work. On a GPU forward, backward and update are what the host needed to queue them.
struct Seconds {
  double data = 0, forward = 0, backward = 0, update = 0, peers = 0, evaluate = 0, checkpoint = 0;
  double training() const { return data + forward + backward + update + peers; }
  static constexpr const char* kNames[] = {"data",  "forward",  "backward",  "update",
                                           "peers", "evaluate", "checkpoint"};
  std::vector<double> each() const { return {data, forward, backward, update, peers, evaluate, checkpoint}; }
  void visit(Archive&);
};

// What this worker's own algorithm sent and waited for, between the beginning and the end of its steps.
struct Transfers {
  double bytes = 0, waited = 0, in_flight = 0;  // seconds as in comm::Traffic
  void visit(Archive&);
};

// What loading met and took, as a checkpoint holds it.
struct DataRecord {
  int64_t unreadable = 0;           // images skipped, at every visit; this worker's
  std::string odd_files = ";";      // OddFiles::pack(), of all workers
  data::StageSeconds loading = {};  // of the training images; this worker's
  std::array<std::pair<const char*, double*>, 6> stages();
  void visit(Archive&);
};

// How a run ended.
struct Outcome {
  int64_t step = 0;              // steps taken
  bool interrupted = false;      // no model was written
  bool bereaved = false;         // workers were lost, so it was interrupted
  std::string why = {};          // then, on one of the others: who, and how to resume
  std::optional<Score> score;    // of the last evaluation
  std::optional<Score> ema;      // then, of the moving average of the weights
  std::optional<Best> best;      // model_best.safetensors, on worker 0
  std::string hash;              // of the parameters that were evaluated
  double images_per_second = 0;  // while training
  double training_seconds = 0;
  std::optional<double> bytes_per_step = {}, hidden_share = {};  // as in Summary
};

// All workers of a run make one each and call the same of its functions.
class Trainer {
 public:
  // Lays the model out in one vector. Writes nothing. `directory` is the run's; Living, of all workers of
  // Setup's place, outlives the trainer.
  Trainer(const Config&, Setup, std::string directory, Progress&, Living&);
  ~Trainer();

  // Continues from a checkpoint; throws BadFile if it is damaged or another training's. Once, before run().
  void resume(const std::string& checkpoint);

  int64_t step_number() const { return k_; }  // steps taken
  // After resume(), on worker 0: in lines, how the data differ from those of the checkpoint.
  const std::vector<std::string>& changes_of_data() const { return changes_of_data_; }
  const StepGraphs& graphs() const { return *graphs_; }

  // Trains to the last step, or until `stop` says so between two steps, on any worker; then writes a
  // checkpoint. Writes metrics and checkpoints on the way; at the end summary, report and model. Throws Error
  // if the loss is not a number. When a worker is lost, those of a row with a center continue without it, unless
  // it was worker 0. Of other rows the rest end; workers in step write a checkpoint of the last step they have
  // in common, if they are the side that may (docs/checkpoints.md).
  Outcome run(const std::function<bool()>& stop = {});

 private:
  void begin();  // collective, once: the strategy starts
  void open_directory();
  bool train();  // false: stopped on the way
  void step();
  void count_transfers();
  void visit(Archive&);
  Identity identity() const;

  // trainer_gradient.cc: one batch, in one pass or several
  Tensor gradient(const optim::GradReady& ready);
  struct Pass {
    Tensor loss, hits;
  };
  void compute_gradient(const StepGraphs::Given&, bool handed_out);
  Pass forward(const StepGraphs::Given&, int64_t first, int64_t last);
  void backward(Tape&, const Tensor& loss, const optim::GradReady& ready);

  // trainer_peers.cc: what workers decide together
  comm::Communicator& comm() const { return living_.comm(); }  // the workers that are still there
  void employ();                                               // makes worker_, whose peers are comm()
  bool first() const { return setup_.place.rank == 0; }
  bool stopped();  // the same answer on every worker at the same step
  bool stopped_apart();
  bool meet_all();
  bool meet();  // before anything done together; false: the others are ahead, go on to stop_at_
  // What workers do together, by all who are there or not at all; f may be done twice (living.h).
  void wholly(const std::function<void()>& f);
  void take_living();
  void note_losses();

  // trainer_losses.cc: what is left when one of them is lost
  void write_for_the_lost();
  Outcome end_without(const std::string& why);
  Outcome end_among(const std::vector<int>& members);
  struct Common {
    int64_t step;             // taken by all
    std::vector<bool> ended;  // by worker, as far as anybody knows
  };
  Common agree(comm::Communicator& living);
  std::vector<int> others_than(const std::vector<int>& members) const;
  Outcome bereaved(const std::vector<int>& members, const std::string& rest) const;
  void save_for_the_lost(comm::Communicator& living, const std::vector<int>& members);
  std::string how_to_resume() const;

  // trainer_record.cc: what the run says about itself
  void start_log();
  template <class Event>
  void record(const Event& e) {
    if (log_) log_->write(e);
    if (board_) board_->write(e);
  }
  void end_step();
  void flush_log();  // the step that is still to be logged, if any; collective, as recently()
  void refuse_bad_loss(int64_t step) const;
  void look_at_scale(bool of_all);  // what was sent of it; collective where of all
  bool close_epoch();               // false: stopped on the way, to be closed after the resume
  // trainer_scoring.cc
  bool score();  // false: stopped on the way; collective
  void record_score();
  void keep_if_best(const Score&, bool ema);  // the module holds what was scored; collective
  bool is_patience_over();                    // collective
  void leave_evaluation();                    // what the last evaluation took the test images for; collective
  // trainer_ema.cc
  int64_t evaluation_batch() const;
  bool score_ema();  // as score()
  void leave_ema();
  void describe_ema(Summary&) const;
  void save();
  void write_checkpoint();  // collective
  Outcome finish(bool interrupted);
  Outcome conclude(bool interrupted);  // collective
  Outcome outcome(bool interrupted, double images_of_all, const Transfers& of_all) const;
  void leave_files(const Outcome&);

  // trainer_gather.cc: what the record holds of all workers
  struct Seen {
    Spread loss, top1;
    double images = 0;            // of all workers
    Spread data_wait, peer_wait;  // shares of `spent`
    std::optional<double> bytes;  // sent so far by a worker, mean over the workers
  };
  void record_epoch(const Seen&);
  Seen over_workers(const Sums& mine) const;  // collective; waits are those up to now
  Seen over_workers(const Sums& mine, const Seconds& until) const;
  Seen recently(const Seconds& until) const;            // since the last step event; collective but for
                                                        // asynchronous workers, who see their own part
  Transfers over_workers(const Transfers& mine) const;  // their sum; collective
  void start_trace();
  void renew_trace();  // between two steps
  void leave_trace(comm::Communicator&);
  void refresh_report();     // while training goes on, now and then
  void gather_for_report();  // collective
  double elapsed() const;
  double epochs_seen() const { return double(k_) / double(setup_.steps_per_epoch); }

  // trainer_data.cc: what it has learned about its data
  int64_t unreadable() const;
  void say_unreadable();
  void unite_odd_files();         // collective
  const DataIndex& data_index();  // of worker 0
  DataRecord data_so_far() const;
  void record_data(Summary&) const;

  const Config config_;
  Setup setup_;
  const std::string directory_;
  Progress& progress_;
  nn::Flat flat_;
  std::vector<nn::Param*> params_;
  std::unique_ptr<nn::Slicer> slicer_;
  std::unique_ptr<LossScale> scale_;  // null: gradients are not scaled
  std::unique_ptr<optim::Rule> rule_;
  std::unique_ptr<StepGraphs> graphs_;
  std::unique_ptr<optim::Rule>
      recorded_rule_;  // rule_ as strategies use it; null where steps are not recorded
  std::unique_ptr<optim::Strategy> strategy_;
  std::optional<optim::Worker> worker_;
  optim::Schedule schedule_;
  std::optional<Ema> ema_;
  const optim::GradReady* ready_ = nullptr;  // who takes this step's slices of the gradient
  Tensor loss_;                              // [1], of the batch that gradient() saw last
  Tensor earlier_;  // gradient of the passes before the last; made when --accumulate needs it
  std::vector<float> mean_, deviation_;  // of the training images
  std::unique_ptr<data::Loader> loader_;
  std::function<bool()> stop_;
  StepBack past_;
  Living& living_;
  std::vector<LostEvent> lost_;
  bool asynchronous_ = false, in_step_ = false, begun_ = false;
  int64_t next_question_ = 0;  // at this step the workers ask each other whether to stop
  double asked_at_ = 0;
  int64_t asked_step_ = 0;
  int64_t stop_at_ = -1, met_at_ = -1;  // of asynchronous workers

  int64_t k_ = 0;              // steps taken; the next is step k_
  int64_t closed_epochs_ = 0;  // evaluated and recorded
  Meters meters_;
  Seconds seconds_, at_last_event_;
  Transfers transfers_;
  comm::Traffic counted_;  // what of the communicator's traffic is in transfers_
  double best_top1_ = -1;
  double training_at_epoch_ = 0;     // seconds_.training() when the epoch began
  DataRecord data_before_;           // of earlier runs of the same training
  int64_t unreadable_at_epoch_ = 0;  // skipped images, up to this epoch

  bool continues_ = false;  // the run in directory_, rather than a new one
  int64_t saved_step_ = -1, scored_step_ = -1;
  double started_ = 0, earlier_seconds_ = 0;
  std::optional<Score> score_, ema_score_;
  std::optional<EvalEvent> scored_;  // not recorded yet
  BestModel best_;                   // of worker 0
  std::vector<Verdict> verdicts_;    // of the last evaluation; this worker's
  bool enough_ = false;              // --patience is over: training ends here
  std::string resumed_from_;         // directory of the run; empty: this one is new
  std::optional<DataIndex> index_;   // of worker 0, once it was needed
  std::vector<std::string> changes_of_data_;
  std::optional<Scaling> scaling_;  // as of the last step that was recorded
  std::optional<double> distance_;  // consensus distance at the last evaluation
  std::vector<std::string> worker_hashes_;
  std::string ema_hash_;
  Moment moment_;
  struct Sent {
    int64_t step;
    Seconds seconds;  // spent when it ended
  };
  std::optional<Sent> sent_;            // a step to be logged, whose numbers are on their way from the device
  std::unique_ptr<MetricsLog> log_;     // of worker 0, as the next
  std::unique_ptr<Tensorboard> board_;  // null with --no-tensorboard
  std::unique_ptr<comm::Trace> trace_, earlier_trace_;  // whole with --trace, else of the latest steps
  int64_t trace_ends_ = 0;                              // at this step another takes over
  std::vector<std::vector<double>> seconds_by_worker_;
  Json timeline_;
  double report_due_ = 0;
  double trace_began_ = 0;
  std::unique_ptr<Checkpoints> checkpoints_;
};

}  // namespace skein::apps
