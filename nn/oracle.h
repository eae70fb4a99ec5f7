// Oracle: the gradient of a model's loss as one flat vector, handed out in slices while backward still runs.
#pragma once
#include <functional>
#include <vector>

#include "nn/slices.h"

namespace skein {
class LossScale;
}

namespace skein::nn {

struct OracleOptions {
  int64_t slice_bytes = int64_t(4) << 20;
  int64_t most_passes = 1;     // the most passes a batch may be cut into
  double clip_norm = 0;        // the longest gradient; 0: no limit
  LossScale* scale = nullptr;  // the loss scale; null: 1
  // Called after each layer's backward, before its slices are handed out, so that messages in
  // flight can progress.
  std::function<void()> between = {};
};

// For one thread. The module, its flat vectors and the loss scale must outlive it.
class Oracle {
 public:
  Oracle(Module&, const Flat&, OracleOptions);

  // Calls `forward`, each time on a new tape, for pass 0 to passes - 1, and fills g with the gradient of the
  // sum of the losses that it returns, unscaled and clipped. Returns that sum.
  //
  // If given, `ready` receives slices of g as they become final, the same ones at every step. They are
  // neither unscaled nor clipped: where workers sum them, judge() does that to the sum.
  Tensor gradient(int64_t passes, const std::function<Tensor(int64_t pass)>& forward,
                  const GradReady& ready = {});
  // For a worker without samples: g <- 0, handed out in the same slices as on the other workers.
  void no_gradient(const GradReady& ready = {});
  void judge();  // unscales and clips g, and tells the loss scale whether it has overflowed

 private:
  Tensor differentiate(const std::function<Tensor()>& forward, const GradReady& ready);
  void add_earlier(const Tensor& slice) const;

  const OracleOptions o_;
  const std::vector<Param*> params_;
  const Tensor g_;
  Slicer slicer_;
  const Tensor earlier_;  // the gradient of the passes before the last
};

}  // namespace skein::nn
