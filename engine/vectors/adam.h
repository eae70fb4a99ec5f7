// Adam's moments, and the steps of the optimizers that use them.
#pragma once
#include "engine/vectors/segments.h"
#include "engine/vectors/vec.h"

namespace skein {

// Adam's bias corrections, counted on the device so that a recorded step can be replayed:
//   t <- t + 1;  first <- 1 / (1 - beta1^t);  second <- 1 / sqrt(1 - beta2^t)
// `on` as in SgdArgs: where it is 0, t stays. f32; a step number is exact up to 2^24.
class AdamClock {
 public:
  explicit AdamClock(Device);
  void tick(double beta1, double beta2, const float* on) const;
  Scalar first() const { return Scalar::at(state_.data<float>() + 1); }
  Scalar second() const { return Scalar::at(state_.data<float>() + 2); }
  Tensor steps() const { return state_.view({1}); }  // t

 private:
  Tensor state_;
};

// The direction of Adam, m and v the running means of g and g^2:
//   m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g^2
//   u = (first m) / (second sqrt(v) + epsilon) + decay_s at
// decay_s is `decay` times the factor of the element's segment; `at` is the point where g was taken. All
// vectors are f32 and as long as the segments. `on` as in SgdArgs.
struct AdamArgs {
  Tensor m, v, g, at;
  Segments segments;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0;
  Scalar first = 1.f, second = 1.f;
  const float* on = nullptr;
};
// x <- x - lr rate_s u, where rate_s is the segment's factor. One pass, which also writes x's 16-bit copy. x
// may be `at`.
void adam_step(const Tensor& x, const AdamArgs&, Scalar lr);
// u <- the direction; where `on` is 0 it is 0.
void adam_direction(const Tensor& u, const AdamArgs&);
// x <- x - lr f_s u, with one number f_s per segment on the device. One pass, as adam_step().
void segment_step(const Tensor& x, const Tensor& u, const Segments&, const Tensor& factors, Scalar lr);

// LAMB's factors (You et al. 2020): f_s <- rate_s |w_s| / |u_s| for segments that have weight decay and whose
// norms are both above 0; rate_s for the others. The squares are those of Segments::sum_squares().
void trust_ratios(const Tensor& f, const Segments&, double decay, const Tensor& squares_w,
                  const Tensor& squares_u);

}  // namespace skein
