// Pacing: in a simulated world, lets the time pass that computing a gradient takes there.
#pragma once
#include "apps/launch/simulated.h"
#include "apps/train/run.h"

namespace skein::apps {

// Elsewhere its functions do nothing.
class Pacing {
 public:
  explicit Pacing(const Run& run)
      : run_(run),
        layers_(run.setup.model ? double(run.setup.model->params().size()) : 1),
        whole_(double((run.setup.global_batch + run.setup.place.world - 1) / run.setup.place.world)) {}

  // Rows [first, last) of a batch have gone forward; with row 0 another gradient begins.
  void forward(int64_t first, int64_t last) {
    Simulated* const s = run_.setup.place.simulated;
    if (!s) return;
    if (first == 0) s->pace.begin();
    share_ = double(last - first) / whole_;
    s->pace.forward(share_);
  }
  // A whole gradient of so many rows.
  void alone(int64_t rows) {
    forward(0, rows);
    if (Simulated* const s = run_.setup.place.simulated) s->pace.backward(share_);
  }
  // Backward has come past one more parameter with these rows; all take the same time.
  void layer() const {
    if (Simulated* const s = run_.setup.place.simulated) s->pace.backward(share_ / layers_);
  }

 private:
  const Run& run_;
  const double layers_;
  const double whole_;  // images of a whole batch: what an even share has
  double share_ = 0;    // of a whole batch, those rows
};

}  // namespace skein::apps
