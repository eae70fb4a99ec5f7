// Coding: a sum that travels in fewer bits, and the residual that makes up for it.
#pragma once
#include "engine/vectors/codec.h"

namespace skein::comm {

// The residual is f32, of x's size and on its device. It begins as zeros and belongs, as x does, to one sum after the other
// of the same numbers: a rank adds to what it sends what it has not been able to say before. After any number of sums,
// the true ones minus those that were computed are the sum of the residuals over the ranks. Ranks that begin anew with
// the mean of their residuals keep that up for the mean over the ranks.
struct Coding {
  Codec codec;
  Tensor residual;
  explicit operator bool() const { return bool(codec); }
};

}  // namespace skein::comm
