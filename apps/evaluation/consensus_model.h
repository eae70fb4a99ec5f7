// ConsensusModel: while it lives, the model holds the mean over the workers, for evaluation or saving.
#pragma once
#include "apps/evaluation/ema.h"
#include "apps/setup/setup.h"
#include "engine/vectors/vec.h"
#include "optim/strategy.h"

namespace skein::apps {

// x becomes the model of the strategy (Strategy::write_model), moved to where the optimizer evaluates it
// (Rule::evaluated_beside, averaged over the workers). Running statistics follow --bn-policy:
//   recompute   estimated again at that model, on the first training batches of each worker, and averaged
//   mix         averaged over the workers; so is allreduce's, unless the optimizer evaluates elsewhere
//   local       those of rank 0
// With `average`, x becomes the mean of the workers' moving averages of weights and, except under recompute,
// so do the statistics. The destructor restores each worker's own model, bit for bit. One worker without
// `average` changes nothing, unless the optimizer evaluates elsewhere. The constructor is collective; if a
// lost worker interrupts it, it restores everything, too.
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
