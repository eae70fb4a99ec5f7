// Primal averaging: the model that is evaluated is an average of the optimizer's iterates.
#pragma once
#include "engine/vectors/segments.h"
#include "engine/vectors/vec.h"

namespace skein {

// Generalized primal averaging has z, which takes the steps, x, an average of z, and y, where
// gradients are taken:
//   z <- z - lr u;  x <- mu_x x + (1 - mu_x) z;  y <- mu_y x + (1 - mu_y) z
// Only y and d = z - y are stored, which makes the step
//   y <- y + (1 - mu_x) d - lr_s (1 - mu_x mu_y) u;  d <- mu_x (d - lr_s mu_y u)
// with lr_s = lr rate_s of the element's segment. Where `on` (as in SgdArgs) is 0, y and d stay. `y` may be
// any vector that is to move like y.
struct PrimalArgs {
  Tensor y, d, u;
  Segments segments;
  Scalar mu_x = 0.f;
  float mu_y = 1;
  const float* on = nullptr;
};
void primal_step(const PrimalArgs&, Scalar lr);

// mu_x of schedule-free learning (Defazio et al. 2024): w <- max(w, lr); sum <- sum + w^2; mu_x = 1 -
// w^2 / sum.
class ScheduleFree {
 public:
  explicit ScheduleFree(Device);
  void tick(Scalar lr, const float* on) const;
  Scalar mu_x() const { return Scalar::at(state_.data<float>() + 2); }
  Tensor state() const { return state_.view({2}); }  // w and sum

 private:
  Tensor state_;
};

// The step uphill of sharpness-aware minimization, and back.
class Ascent {
 public:
  Ascent(const Tensor& x, float radius);
  void up(const Tensor& g) const;  // x <- x + radius g / |g|; a zero gradient leaves x where it is
  void down() const;               // x as it was before up(), bit for bit

 private:
  const Tensor x_, before_;
  const Segments all_;
  const float radius_;
};

}  // namespace skein
