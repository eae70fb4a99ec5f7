// The passes of Muon around its orthogonal matrices.
#pragma once
#include "engine/vectors/segments.h"
#include "engine/vectors/vec.h"

namespace skein {

// b <- b + (1 - beta) (g - b);  u <- g + beta (b - g). Where `on` (as in SgdArgs) is 0, b stays and u is 0.
void muon_direction(const Tensor& b, const Tensor& u, const Tensor& g, float beta, const float* on);
// u_s <- u_s / |u_s| for each segment; a zero segment stays zero.
void normalize_segments(const Tensor& u, const Segments&);
// x <- x - lr rate_s (scale_s u + decay_s at), with one number scale_s per segment on the device; decay_s is
// `decay` times the segment's factor. Where `on` is 0, x stays.
struct MuonStep {
  Tensor x, u, at;
  Segments segments;
  Tensor scale;
  float decay = 0;
  const float* on = nullptr;
};
void muon_step(const MuonStep&, Scalar lr);

}  // namespace skein
