// Computing: steps of one worker without any other, as the probe of --plan takes them.
#pragma once
#include <vector>

#include "apps/train/learning.h"

namespace skein::apps {

double middle(std::vector<double>);  // the median; of two in the middle the larger

// A worker's model and data.
class Computing {
 public:
  // Opens them as a run with these flags does. Collective.
  Computing(const Config&, const Member&, Progress&);
  const Setup& setup() const { return run_.setup; }
  int64_t model_bytes() const { return learning_.flat.x.bytes(); }

  Seconds step() { return step(nullptr); }
  std::vector<Seconds> steps(int count);
  // How much of backward is done when each slice of the gradient is final: medians of so many steps.
  std::vector<double> timeline(int count);

 private:
  Seconds step(std::vector<double>* finals);

  Survivors survivors_;
  Run run_;
  Traces traces_;
  Batches batches_;
  Learning learning_;
};

}  // namespace skein::apps
