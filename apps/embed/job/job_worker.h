// JobWorker: a VectorWorker of a job, made from words, whose calls succeed on all workers or on none.
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

// Belongs to its job's thread. All calls but ready(), set_rate() and figures() are collective. They throw what VectorWorker's
// throw, BadOption if workers disagree, and Error when the job has been left.
class JobWorker {
 public:
  // Over memory that lives as long as this; all workers start with what worker 0 has in it.
  JobWorker(std::shared_ptr<EmbeddedJob>, const WorkerVectors&, const JobWorkerOptions&);
  ~JobWorker();
  JobWorker(const JobWorker&) = delete;

  // Leaves the gradient in its memory and returns the loss. Optimizers that take it uphill call it twice.
  using Gradient = std::function<float()>;
  double step(const Gradient&);
  void ready(size_t parameter);  // within the gradient function
  void set_rate(float lr);
  void show_model();
  void hide_model();
  double finish();
  // Of the files of docs/checkpoints.md; load() takes a directory's newest one, or that one.
  void save(const std::string& directory, int keep);
  void load(const std::string& path);
  std::map<std::string, double> figures() const;

  bool in_step() const { return in_step_; }
  void end() { worker_.reset(); }  // its job is being left

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
