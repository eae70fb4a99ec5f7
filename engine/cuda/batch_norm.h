// The first half of batch norm's forward by itself.
#pragma once
#include "engine/backend.h"

namespace skein::cuda {

// mean, rstd and, if there are any, running statistics <- what a training forward makes of x, or of its sums
// if they are given. Reads no other tensor.
void statistics(const BatchNormArgs&);

}  // namespace skein::cuda
