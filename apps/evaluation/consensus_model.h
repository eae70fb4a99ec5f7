// ConsensusModel: while it lives, the model holds the mean over the workers, for evaluation or saving.
#pragma once
#include "apps/evaluation/ema.h"
#include "apps/setup/setup.h"
#include "engine/vectors/vec.h"
#include "optim/strategy.h"

namespace skein::apps {

// The model of the strategy (Strategy::write_model), moved to where the optimizer evaluates it
// (Rule::evaluated_beside, the mean over the workers), and running statistics as --bn-policy says:
//   recompute   re-estimated at the mean, on the first training batches of each worker, and averaged
//   mix, and for allreduce unless the optimizer evaluates elsewhere   the mean over the workers
//   local       rank 0's
// With `average` it is the mean of the workers' moving averages of weights and, except under
// recompute, of statistics. The destructor restores each worker's own model, bit for bit. With one
// worker and without `average` it does nothing, unless the optimizer evaluates elsewhere. The constructor is collective; if a lost worker
// interrupts it, it restores everything, too.
class ConsensusModel {
 public:
  ConsensusModel(const Config&, const Setup&, const nn::Flat&, optim::Strategy&, optim::Worker&,
                 const Ema* average = nullptr);
  ConsensusModel(const ConsensusModel&) = delete;
  double distance() const { return distance_; }  // of the workers from it: optim::consensus_distance

 private:
  void recompute(const Config&, const Setup&);
  struct Borrowed {
    const Tensor place;
    Tensor own = {};
    void lend() { own = place.clone(); }
    ~Borrowed() {
      if (own) copy(place, own);
    }
  };
  Borrowed x_, buffers_;
  double distance_ = 0;
};

}  // namespace skein::apps
