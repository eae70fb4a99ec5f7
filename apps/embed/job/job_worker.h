// JobWorker: a VectorWorker of a job, made from options given as text. Its calls succeed on all workers or on none.
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
class JobWorker {
 public:
  // The vectors must live as long as this worker. All workers start with worker 0's values.
  JobWorker(std::shared_ptr<EmbeddedJob>, const WorkerVectors&, const JobWorkerOptions&);
  ~JobWorker();
  JobWorker(const JobWorker&) = delete;

  // Writes the gradient to its vector and returns the loss. SAM calls it twice a step.
  using Gradient = std::function<float()>;
  double step(const Gradient&);
  void ready(size_t parameter);  // to be called within the gradient function
  void set_rate(float lr);
  void show_model();
  void hide_model();
  double finish();
  // Checkpoints as in docs/checkpoints.md. load() takes a checkpoint, or a directory, whose newest it loads.
  void save(const std::string& directory, int keep);
  void load(const std::string& path);
  std::map<std::string, double> figures() const;

  bool in_step() const { return in_step_; }
  void end() { worker_.reset(); }  // called by the job when it is left

 private:
  VectorWorker& present() const;
  std::string said(const WorkerOptions&) const;
  Identity identity() const;

  const std::shared_ptr<EmbeddedJob> job_;
  const JobWorkerOptions o_;
  HandingOut slices_;
  std::unique_ptr<VectorWorker> worker_;
  bool in_step_ = false;
};

// The values with which an optimizer begins unless they are given: lr, weight-decay, and its flags.
optim::Values defaults_of_rule(const std::string& name);

}  // namespace skein::apps
