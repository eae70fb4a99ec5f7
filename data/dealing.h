// How a step's images are dealt to workers of different speeds.
#pragma once
#include <vector>

#include "engine/base.h"

namespace skein::data {

// Shares of `global_batch` in proportion to the workers' speeds, so that the last one is done as early as can
// be. They add up to the global batch, no share is empty, and where an even share has 32 images or more, they
// are multiples of 8 (but the one that takes what is left over). A worker whose speed is not known, 0, counts
// as fast as the others on average. `most`, if given: what each worker's memory holds. Throws BadOption if
// all together do not hold it.
std::vector<int64_t> deal_by_speed(int64_t global_batch, const std::vector<double>& speeds,
                                   const std::vector<int64_t>& most = {});

// The speeds with those that are not known filled in by the mean of the others; if none is known, all are 1.
std::vector<double> with_mean(std::vector<double> speeds);

}  // namespace skein::data
