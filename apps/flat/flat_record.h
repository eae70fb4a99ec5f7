// What the workers of a flat run leave, who are threads of one process: figures, and the files made of them.
#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/flat/flat_model.h"
#include "apps/launch/simulated.h"
#include "apps/report/metrics.h"
#include "apps/report/progress.h"
#include "apps/train/costs.h"
#include "optim/schedule.h"

namespace skein::apps {

// Hears of a flat run.
class FlatObserver {
 public:
  virtual ~FlatObserver() = default;
  // By worker 0, after a step: its loss, if there are any, and what its steps have cost.
  virtual void step(const Simulated&, int64_t /*steps*/, std::optional<double> /*loss*/, const Costs&) {}
  // By each worker, after its last step.
  virtual void ended(int rank, const Costs&) = 0;
  // By worker 0, after all have ended: the loss of the mean model, its hash, and how far apart
  // the workers were.
  virtual void model(double /*loss*/, double /*distance*/, const Tensor& /*x*/) {}
};

// The figures of a run that leaves no files.
class FlatSums final : public FlatObserver {
 public:
  void ended(int rank, const Costs&) override;
  double longest_training = 0,
         most_waiting = 0;  // seconds; share of its training that the worker stood still
  Transfers all;
  int64_t workers = 0;  // that have ended
};

class FlatRecord final : public FlatObserver {
 public:
  // Makes metrics.jsonl and config.toml in the directory.
  FlatRecord(const Config&, const FlatModel&, const optim::Schedule&, std::string directory, Progress&);

  void step(const Simulated&, int64_t steps, std::optional<double> loss, const Costs&) override;
  void ended(int rank, const Costs&) override;
  void model(double loss, double distance, const Tensor& x) override;

  // When the world has ended: summary.json and report.html, and the lines for the user.
  void write();
  // The same when a lost worker has ended it, with the curves until then.
  void write_unfinished();

 private:
  double images(int64_t steps) const;
  Summary summary_of(int64_t steps, double seconds) const;
  Json environment() const;

  const Config& config_;
  const FlatModel& model_;
  const optim::Schedule schedule_;
  const std::string directory_;
  Progress& progress_;
  MetricsLog log_;
  struct Event {  // the last one
    int64_t step = 0;
    Seconds spent;
  } last_;
  struct {
    double steps = -1, real = 0;  // taken and passed until then; negative: nothing has been seen
  } began_;
  Moment moment_;
  Seconds first_;                               // of worker 0
  std::vector<std::vector<double>> by_worker_;  // seconds; empty in large worlds
  FlatSums sums_;
  double seconds_ = 0;
  std::optional<double> loss_, apart_;
  std::string hash_;
};

}  // namespace skein::apps
