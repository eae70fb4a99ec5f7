// The fused step of gradient energy matching: one pass over the vectors of a worker's turn.
#pragma once
#include "engine/vectors/vec.h"

namespace skein {

// Per element, g taken at x, which then becomes the new point:
//   d = -lr (g + decay x) ;  m <- mu m + d ;  c = theta - s
//   pi = clamp((kappa |m| - |c|) / max(|d|, FLT_MIN), least, most), 0 unless the numerator is above 0
//   u <- pi d ;  s <- theta ;  x <- theta + u, or theta where at_theta
// All vectors have the same size and device. They are f32, except that u may be of any floating type: it is
// rounded as it is written, x is not. theta is only read; u may not be theta. `pi` is written if given. `on`
// is a flag in the device's memory (engine/vectors/loss_scale.h) or null. If it is 0, g is ignored: m stays,
// u <- 0, pi <- 0, s <- theta and x <- theta. With segments each takes its own part of decay, and `decayed`
// is not read.
// Large class: the arguments of one function, by name.
struct GemArgs {
  Tensor x, m, s, u, pi;
  Tensor g, theta;
  Scalar lr = 0.f, mu = 0.f, kappa = 1.f, decay = 0.f;
  int64_t decayed = 0;  // elements [0, decayed) decay
  float least = 0, most = 5;
  bool at_theta = false;
  const float* on = nullptr;
  const Segments* segments = nullptr;  // their rates are not read
};
void gem_update(const GemArgs&);

}  // namespace skein
