// Trainer: one worker's part in a training, from the first step to the files that are left.
#pragma once
#include "apps/survival/survivors.h"
#include "apps/train/batches.h"
#include "apps/train/dealing.h"
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

// Each worker of a run makes one, and all call the same member functions in the same order.
class Trainer {
 public:
  // Lays the model out in one vector; writes no file. `directory` is the run's. Survivors holds all workers
  // of Setup's place and must outlive the trainer.
  Trainer(const Config&, Setup, std::string directory, Progress&, Survivors&);
  ~Trainer();

  // Continues as a member of a later epoch of the membership, with the state that the workers have taken
  // along. Call it once, before run(). Collective.
  void inherit(const Legacy&);
  // Begins a run whose first workers were lost before any step of it; what they have written is continued.
  // Call it before run().
  void begin_again();
  // Continues from a checkpoint; throws BadFile if it is damaged or another training's. Once, before run().
  void resume(const std::string& checkpoint);

  int64_t step_number() const { return run_.k; }  // steps taken
  // After resume(), on worker 0: lines that say how the data differ from those of the checkpoint.
  const std::vector<std::string>& changes_of_data() const { return saving_.changes_of_data(); }
  const StepGraphs& graphs() const { return learning_.gradient.graphs(); }
  optim::Strategy& algorithm() { return *learning_.strategy; }

  // Trains to the last step, writes metrics and checkpoints on the way, and at the end summary, report and
  // model. Stops earlier, with a checkpoint, if between two steps `stop` is true on any worker, or `leave` on
  // all. With a council, workers on which only `leave` is true end with GivenUp after two seconds. Throws
  // Error if the loss is not a number. If a worker is lost, those of a row with a center continue without it,
  // unless it was worker 0; others end, and leave what rollback.h says. With a council (Place::council) a
  // change of the membership ends the call with Outcome::legacy, unless others have completed the run; before
  // this worker has any state, EpochEnds and PeerLost are thrown instead.
  Outcome run(const std::function<bool()>& stop = {}, const std::function<bool()>& leave = {});

 private:
  void begin();
  void regroup();
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
  Dealing dealing_;
  Stopping stopping_;
  Saving saving_;
  Rollback rollback_;
  int64_t closed_epochs_ = 0;  // evaluated and recorded
  bool begun_ = false, inherited_ = false;
};

}  // namespace skein::apps
