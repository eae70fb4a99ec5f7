// Trainer: one worker's part in a training, from the first step to the files that are left.
#pragma once
#include "apps/survival/survivors.h"
#include "apps/train/batches.h"
#include "apps/train/learning.h"
#include "apps/train/outcome.h"
#include "apps/train/record.h"
#include "apps/train/results.h"
#include "apps/train/rollback.h"
#include "apps/train/run.h"
#include "apps/train/saving.h"
#include "apps/train/scoring.h"
#include "apps/train/stopping.h"
#include "apps/train/traces.h"

namespace skein::apps {

// All workers of a run make one each and call the same of its functions.
class Trainer {
 public:
  // Lays the model out in one vector. Writes nothing. `directory` is the run's; Survivors, of all workers of
  // Setup's place, outlives the trainer.
  Trainer(const Config&, Setup, std::string directory, Progress&, Survivors&);
  ~Trainer();

  // Continues as a member of a later epoch of the membership, from what this worker and others have taken along. Once,
  // before run(). Collective.
  void inherit(const Legacy&);
  // Begins a run that others have begun, who were lost before any step of it: what they have written is continued. To be
  // called before run().
  void begin_again();
  // Continues from a checkpoint; throws BadFile if it is damaged or another training's. Once, before run().
  void resume(const std::string& checkpoint);

  int64_t step_number() const { return run_.k; }  // steps taken
  // After resume(), on worker 0: in lines, how the data differ from those of the checkpoint.
  const std::vector<std::string>& changes_of_data() const { return saving_.changes_of_data(); }
  const StepGraphs& graphs() const { return learning_.gradient.graphs(); }
  optim::Strategy& algorithm() { return *learning_.strategy; }

  // Trains to the last step, or until `stop` says so between two steps, on any worker, or `leave` on all; then writes a
  // checkpoint. Where `leave` says so on some and there is a council, these end with GivenUp after two seconds. Writes metrics and checkpoints on the way; at the end summary, report and model. Throws Error
  // if the loss is not a number. When a worker is lost, those of a row with a center continue without it, unless
  // it was worker 0. Where there is a council (Place::council), a change of membership ends the call, with
  // Outcome::legacy, unless others have completed the run; EpochEnds and PeerLost come before this worker has any. Otherwise workers of other rows end, and leave what rollback.h says.
  Outcome run(const std::function<bool()>& stop = {}, const std::function<bool()>& leave = {});

 private:
  void begin();
  void regroup();
  void open_directory();
  bool train();
  Outcome leave_epoch();
  void step();
  bool close_epoch();
  void save();
  Outcome finish(bool interrupted);
  void visit(Archive&);

  Run run_;
  Traces traces_;
  Batches batches_;
  Learning learning_;
  Record record_;
  Scoring scoring_;
  Results results_;
  Stopping stopping_;
  Saving saving_;
  Rollback rollback_;
  int64_t closed_epochs_ = 0;  // evaluated and recorded
  bool begun_ = false, inherited_ = false;
};

}  // namespace skein::apps
