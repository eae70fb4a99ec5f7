// Gradient: where a batch becomes a gradient. It is the oracle that strategies ask.
#pragma once
#include <memory>

#include "apps/train/batches.h"
#include "apps/train/gradient/blending.h"
#include "apps/train/gradient/meters.h"
#include "apps/train/gradient/pacing.h"
#include "apps/train/gradient/step_graphs.h"
#include "apps/train/traces.h"
#include "engine/vectors/loss_scale.h"
#include "nn/oracle.h"
#include "optim/strategy.h"
#include "optim/uphill.h"

namespace skein::apps {

// Fills the g of `flat` with the gradient of the model's mean loss on the next batch, made in --accumulate
// passes, or with the sum of such gradients over the workers; unscaled and clipped.
class Gradient {
 public:
  Gradient(Run&, Batches&, Traces&, const nn::Flat& flat);

  // The loss, on the device. Throws Error that says which batch would fit where memory does not suffice.
  Tensor of_next_batch(const optim::Slices& = {});

  // Call it after every step: where the algorithm took no gradient, the step's batch is dropped.
  void end_step();

  // Gradients are taken this far uphill (SAM). Call it before the first step.
  void take_uphill(float radius) {
    if (radius > 0) uphill_ = std::make_unique<optim::Uphill>(flat_.x, flat_.g, flat_.buffers, radius);
  }

  // This worker's share of a step is another one from now on.
  void begin_again() { speed_.clear(), graphs_.begin_again(run_.rows()); }
  // Of the latest steps, where it is asked for (--batch-size auto).
  const Speed& speed() const { return speed_; }

  Meters& meters() { return meters_; }
  LossScale* scale() const { return scale_.get(); }  // null: gradients are not scaled
  const StepGraphs& graphs() const { return graphs_; }

 private:
  Tensor next(const GradReady& ready);
  void compute(const StepGraphs::Given&, bool handed_out);
  Tensor differentiate(const StepGraphs::Given&, const GradReady& slices, Tensor* hits);
  struct Pass {
    Tensor loss, hits;
  };
  Pass forward(const StepGraphs::Given&, int64_t first, int64_t last);

  Run& run_;
  Batches& batches_;
  Traces& traces_;
  const nn::Flat& flat_;
  std::unique_ptr<optim::Uphill> uphill_;  // null: gradients are taken at x
  const std::unique_ptr<LossScale> scale_;
  StepGraphs graphs_;
  Pacing pacing_{run_};
  nn::Oracle oracle_;
  Meters meters_;
  Speed speed_{run_.config.batch_size.automatic, run_.setup.device};
  bool taken_ = false;  // in this step
  Tensor loss_;         // [1], of the latest batch
  GradReady ready_;     // takes this step's slices of the gradient
};

}  // namespace skein::apps
