// Dealing: with --batch-size auto, the workers' shares of the global batch follow their measured speeds.
#pragma once
#include <vector>

#include "apps/train/batches.h"
#include "apps/train/learning.h"
#include "apps/train/stopping.h"
#include "apps/train/worker_events.h"

namespace skein::apps {

// Before the first step each worker measures its speed at an even share, or at what its memory holds of one.
// While it trains it measures the steps that it takes (speed.h), and all deal again, at the same step, when
// the ratio of two workers' speeds has changed by more than a tenth. Shares that a checkpoint or a change of
// membership has brought along are kept until then.
class Dealing {
 public:
  Dealing(Run&, Batches&, Learning&, WorkerEvents&);

  void begin();  // before the first step; collective
  // Workers in step tell each other their speeds when they ask whether to stop.
  Stopping::Beside beside();
  // Asynchronous ones tell each other where they have met (collective), and then do as they have heard.
  void ask_all();
  void act();

 private:
  double speed() const;  // 0: not known
  // The same numbers have the same effect on all workers, at the same step.
  void hear(const std::vector<double>& speeds);
  int64_t what_fits(int64_t rows);
  double measure(int64_t rows);
  void measure_all();
  std::vector<int64_t> settle(double speed, int64_t tried, int64_t most);
  bool fits(int64_t rows);
  void rehearse(int64_t rows);
  void share_out(const std::vector<int64_t>& shares, const std::string& why);

  Run& run_;
  Batches& batches_;
  Learning& learning_;
  WorkerEvents& workers_;
  const bool on_;
  std::vector<double> told_;      // by all, where asynchronous workers have met
  std::vector<double> dealt_by_;  // the speeds that the shares are in proportion to
};

}  // namespace skein::apps
