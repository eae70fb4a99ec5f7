// Computing: steps of one worker without any other, as the probe of --plan takes them.
#pragma once
#include <vector>

#include "apps/train/learning.h"

namespace skein::apps {

double middle(std::vector<double>);  // the median; of two in the middle the larger

// A step, and a pass over the parameters after it.
struct StepAndPass : Seconds {
  double pass = 0;
};

// A worker's model and data.
class Computing {
 public:
  // Opens them as a run with these flags does. Collective.
  Computing(const Config&, const Member&, Progress&);
  const Setup& setup() const { return run_.setup; }
  int64_t model_bytes() const { return learning_.flat.x.bytes(); }

  Seconds step() { return step(nullptr); }
  std::vector<StepAndPass> steps(int count);
  int64_t moved_by_update() const { return moved_by_update_; }  // bytes, as is the next
  int64_t moved_by_pass() const { return moved_by_pass_; }
  // How much of backward is done when each slice of the gradient is final: medians of so many steps.
  std::vector<double> timeline(int count);

 private:
  Seconds step(std::vector<double>* finals);
  double pass();

  Survivors survivors_;
  Run run_;
  Traces traces_;
  Batches batches_;
  Learning learning_;
  const Tensor beside_;  // as long as the parameters
  int64_t moved_by_update_ = 0, moved_by_pass_ = 0;
};

}  // namespace skein::apps
