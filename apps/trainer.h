// Trainer: builds a Worker from model, loader and rule, and runs the strategy over the steps of a training.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/checkpoint.h"
#include "apps/evaluate.h"
#include "apps/meters.h"
#include "apps/metrics.h"
#include "apps/progress.h"
#include "apps/setup.h"
#include "optim/schedule.h"
#include "optim/strategy.h"

namespace skein::apps {

// Seconds by kind of work. On a GPU forward, backward and update are what the host needed to queue them.
struct Seconds {
  double data = 0, forward = 0, backward = 0, update = 0, peers = 0, evaluate = 0, checkpoint = 0;
  double training() const { return data + forward + backward + update + peers; }
  void visit(Archive&);
};

// How a run ended.
struct Outcome {
  int64_t step = 0;              // steps taken
  bool interrupted = false;      // a checkpoint of `step` was written, and no model
  std::optional<Score> score;    // of the last evaluation
  std::string hash;              // of the parameters
  double images_per_second = 0;  // while training
  double training_seconds = 0;
};

class Trainer {
 public:
  // Lays the model out in one vector. Writes nothing. `directory` is the run's.
  Trainer(const Config&, Setup, std::string directory, Progress&);
  ~Trainer();

  // Continues from a checkpoint; throws BadFile if it is damaged or another training's. Once, before run().
  void resume(const std::string& checkpoint);

  // Trains to the last step, or until `stop` says so between two steps; then writes a checkpoint. Writes
  // metrics and checkpoints on the way; at the end summary, report and model. Throws Error if the loss is not
  // a number.
  Outcome run(const std::function<bool()>& stop = {});

 private:
  void open_directory();
  void step();
  Tensor gradient(const optim::GradReady& ready);
  void visit(Archive&);
  Identity identity() const;

  // trainer_record.cc: what the run says about itself
  void start_log();
  void end_step();
  void say_unreadable();
  void refuse_bad_loss() const;
  bool close_epoch();  // false: stopped on the way, to be closed after the resume
  bool score();        // likewise
  void save();
  Outcome finish(bool interrupted);
  void leave_files(const Outcome&);
  double elapsed() const;
  double epochs_seen() const { return double(k_) / double(setup_.steps_per_epoch); }
  int64_t unreadable() const;

  const Config config_;
  Setup setup_;
  const std::string directory_;
  Progress& progress_;
  nn::Flat flat_;
  std::vector<nn::Param*> params_;
  std::unique_ptr<nn::Slicer> slicer_;
  std::unique_ptr<optim::Rule> rule_;
  std::unique_ptr<optim::Strategy> strategy_;
  std::optional<optim::Worker> worker_;
  optim::Schedule schedule_;
  std::vector<float> mean_, deviation_;  // of the training images
  std::unique_ptr<data::Loader> loader_;
  std::function<bool()> stop_;

  int64_t k_ = 0;              // steps taken; the next is step k_
  int64_t closed_epochs_ = 0;  // evaluated and recorded
  Meters meters_;
  Seconds seconds_, at_last_event_;
  double best_top1_ = -1;
  double training_at_epoch_ = 0;  // seconds_.training() when the epoch began
  int64_t unreadable_before_ = 0,
          unreadable_at_epoch_ = 0;  // skipped images: before a resume, up to this epoch

  bool continues_ = false;  // the run in directory_, rather than a new one
  int64_t saved_step_ = -1, scored_step_ = -1;
  double started_ = 0, earlier_seconds_ = 0;
  std::optional<Score> score_;
  Moment moment_;
  std::vector<std::string> unreadable_names_;
  std::unique_ptr<MetricsLog> log_;
  std::unique_ptr<Checkpoints> checkpoints_;
};

}  // namespace skein::apps
