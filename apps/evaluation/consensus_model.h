// ConsensusModel: while it lives, the model holds the mean over the workers, to be evaluated or saved.
#pragma once
#include "apps/evaluation/ema.h"
#include "apps/setup/setup.h"
#include "engine/vectors/vec.h"
#include "optim/strategy.h"

namespace skein::apps {

// The mean of what the strategy says is averaged, and running statistics as --bn-policy says:
//   recompute   re-estimated at the mean, on the first training batches of each worker, and averaged
//   mix, and always for allreduce   the mean over the workers
//   local       rank 0's
// With `average` the mean of the workers' moving averages, of weights and, but under recompute, of
// statistics. Destroyed, it gives each worker back its own, bit for bit. Alone, without `average`, it does
// nothing. Construction is collective; one that a lost worker breaks off gives everything back, too.
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
