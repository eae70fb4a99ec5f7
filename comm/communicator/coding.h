// Coding: a sum that travels in fewer bits, and the residual that makes up for it.
#pragma once
#include "engine/vectors/codec.h"

namespace skein::comm {

// The residual is f32, of x's size and on its device. It starts at zero and is kept from one sum of the same
// numbers to the next: it holds what rounding has left out so far, and a rank adds it to what it sends. So
// the sum of all exact sums minus the sum of all computed ones is the sum of the residuals over the ranks.
// For means this still holds if ranks start again from the mean of their residuals.
struct Coding {
  Codec codec;
  Tensor residual;
  explicit operator bool() const { return bool(codec); }
};

}  // namespace skein::comm
