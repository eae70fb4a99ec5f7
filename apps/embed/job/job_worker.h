// JobWorker: a VectorWorker of a job, made from options given as text. Its calls succeed on all workers
// or on none.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/checkpoint/checkpoint.h"
#include "apps/embed/handing_out.h"
#include "apps/embed/job/job.h"
#include "apps/embed/vector_worker.h"

namespace skein::apps {

struct JobWorkerOptions {
  std::string algorithm = "sgp", optimizer = "sgd";
  std::optional<float> lr = {}, weight_decay = {};  // none: the optimizer's default, but sgd decays nothing
  uint64_t seed = 1;
  optim::Values flags =
      {};  // those of the algorithm and of the optimizer, as docs/flags.md names them, without dashes
  std::string layout = "";          // the same for equal parameters in the same order
  std::vector<int64_t> sizes = {};  // of the parameters as they lie in x, for ready(); none: x is one
};

// It is used by its job's thread only. All calls except ready(), set_rate() and figures() are collective.
// They throw what VectorWorker throws, BadOption if workers disagree, and Error after the job has been left.
//
// In an elastic job a change of the membership is no error: a call that it interrupts goes on among the new
// members. They continue from the last step that all of them have taken. A worker that was ahead takes the
// steps since then once more, with the gradient function that it was given last.
class JobWorker {
 public:
  // The vectors must live as long as this worker. All workers start with worker 0's values, a
  // newcomer with the members'. In an elastic job it throws BadOption for an algorithm whose workers
  // are at different steps.
  JobWorker(std::shared_ptr<EmbeddedJob>, const WorkerVectors&, const JobWorkerOptions&);
  ~JobWorker();
  JobWorker(const JobWorker&) = delete;

  // Writes the gradient to its vector and returns the loss. SAM calls it twice a step. In an elastic job it
  // may be called until another one is given.
  using Gradient = std::function<float()>;
  double step(const Gradient&);
  void ready(size_t parameter);  // to be called within the gradient function
  void set_rate(float lr);
  int64_t steps() const { return taken_; }  // taken by all, counting those before this worker came
  void show_model();
  void hide_model();
  double finish();
  // Checkpoints as in docs/checkpoints.md. load() takes a checkpoint, or a directory, whose newest it loads,
  // also if another number of workers wrote it. In an elastic job it comes before the first step; for a
  // newcomer, which has the members' state, it does nothing.
  void save(const std::string& directory, int keep);
  void load(const std::string& path);
  std::map<std::string, double> figures() const;

  bool is_elastic() const { return job_->council(); }
  bool in_step() const { return in_step_; }
  void end() { worker_.reset(); }             // called by the job when it is left,
  void forget() { (void)worker_.release(); }  // or in a process that was forked from the worker's

 private:
  VectorWorker& present() const;
  void make(const std::optional<optim::Snapshot>& taken_along);
  void begin();
  void inherit(const std::optional<optim::Snapshot>& taken_along);
  void follow();
  void follow_from(const std::optional<optim::Snapshot>& taken_along);
  double take_step();
  void write_checkpoint();
  void read_checkpoint();
  enum class Call : uint8_t { kStep, kShow, kSave, kLoad, kFinish };
  template <class F>
  auto through_changes(Call, const F&);
  void agree(Call);
  void take_part(Call);
  void show_to_all();
  void finish_with_all(std::optional<double>& apart);

  const std::shared_ptr<EmbeddedJob> job_;
  const WorkerVectors vectors_;
  const JobWorkerOptions o_;
  std::optional<float> rate_;  // since set_rate()
  HandingOut slices_;
  std::unique_ptr<VectorWorker> worker_;
  Gradient gradient_;  // the last one
  int64_t taken_ = 0;  // steps that the caller has seen
  const bool joins_;   // it has come to a job at work
  // False after a change of the membership, when workers may be at different calls, until all are at a step.
  bool agreed_ = true;
  int calls_ = 0;     // other than step, that were completed since the last one
  std::string path_;  // of the checkpoint being written or read
  int keep_ = 0;
  bool in_step_ = false;
};

// How the checkpoints of `world` such workers are told from others.
Identity identity_of(const JobWorkerOptions&, int world);

// What each of so many workers is made from. Throws BadOption for flags that nothing reads.
WorkerOptions checked_options(const JobWorkerOptions&, int world);

// The values with which an optimizer begins unless they are given: lr, weight-decay, and its flags.
optim::Values defaults_of_rule(const std::string& name);

}  // namespace skein::apps
