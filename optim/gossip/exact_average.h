// Exact averages over any gossip: --exact-every and --final-average.
#pragma once
#include <memory>

#include "optim/strategy.h"

namespace skein::optim {

// An algorithm whose workers can also take the exact mean of their models.
class Gossiping : public Strategy {
 public:
  // All workers go on from the mean of their models and of what is on its way between them.
  // Collective, after settle().
  virtual void average(Worker&) = 0;
};

// The same algorithm, whose workers take the exact mean of their models (average()) after every --exact-every
// local steps (Gossip-PGA: Chen et al., ICML 2021; 0: never) and, with --final-average (on), after the last
// step. Asynchronous workers wait for each other there.
std::unique_ptr<Strategy> with_exact_average(std::unique_ptr<Gossiping>, const Options&, int world,
                                             bool asynchronous = false);

}  // namespace skein::optim
