// Blending: how the images of a step's batch are blended, drawn from (seed, step).
#pragma once
#include "engine/vectors/mix.h"

namespace skein::apps {

// --mixup and --cutmix: the shapes of their beta distributions; 0 is off.
struct Blending {
  double mixup = 0, cutmix = 0;
  bool on() const { return mixup > 0 || cutmix > 0; }
};

// The kind (each with probability 1/2 if both are on), the share, drawn from Beta(shape, shape), and cutmix's
// box are the same on all workers; partners are within a worker's own `rows`. It is a pure function, so a
// resumed run draws the same.
Blend draw_blend(const Blending&, uint64_t seed, int64_t step, int rank, int64_t rows, int height, int width);

}  // namespace skein::apps
