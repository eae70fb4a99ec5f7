// Exact averages over any gossip: --exact-every and --final-average.
#pragma once
#include <memory>

#include "optim/strategy.h"

namespace skein::optim {

// The same algorithm, whose workers take the exact mean of their models (Strategy::average) after every --exact-every
// local steps (Gossip-PGA: Chen et al., ICML 2021; 0: never) and, with --final-average (on), after the last step.
// Asynchronous workers wait for each other there.
std::unique_ptr<Strategy> with_exact_average(std::unique_ptr<Strategy>, const Options&, int world,
                                             bool asynchronous = false);

}  // namespace skein::optim
