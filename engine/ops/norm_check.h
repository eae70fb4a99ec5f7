// What both processors' batch norms must be given, and when sums are of no use to them.
#pragma once
#include "engine/backend.h"

namespace skein {

// Throws Error if shapes or types of the arguments do not fit together, or if there are no elements.
void check_norm(const BatchNormArgs&);

// Whether a channel's sums around zero, divided by its pixels, are too alike to give a variance. With a
// relative error e of either sum, that has one of about (1 + 3 r) e, r = mean^2 / variance. Up to r = 127, a
// mean of 11 deviations, it is below 400 e.
HD bool sums_cancel(double mean, double mean_square) {
  return mean_square > 128 * (mean_square - mean * mean);
}

}  // namespace skein
