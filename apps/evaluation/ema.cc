// Updates the moving averages, with one pass over each vector per step.
#include "apps/evaluation/ema.h"

#include <algorithm>

#include "engine/vectors/vec.h"

namespace skein::apps {

Ema::Ema(double decay, const nn::Flat& flat)
    : decay_(decay), x_(flat.x.clone()), buffers_(flat.buffers.clone()) {
  CHECK(decay > 0 && decay < 1, decay);
}

double Ema::decay_at(int64_t t) const { return std::min(decay_, double(1 + t) / double(10 + t)); }

void Ema::update(const Tensor& x, const Tensor& buffers) {
  const double toward = 1 - decay_at(++updates_);
  lerp(x_, x, toward);
  if (buffers_.size() > 0) lerp(buffers_, buffers, toward);
}

void Ema::visit(Archive& a) {
  a("x", x_), a("updates", updates_);
  if (buffers_.size() > 0) a("buffers", buffers_);
}

}  // namespace skein::apps
