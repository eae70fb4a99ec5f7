// Samples: a part of a vector's elements that ranks agree on without a message.
#pragma once
#include "engine/random.h"

namespace skein {

// A sample of m = values.size() elements of x, one out of each of m equal parts: element j of values belongs
// to one of [j n / m, (j + 1) n / m), which the draw chooses. f32, m <= n, on one device.
void take_sample(const Tensor& values, const Tensor& x, const Draw&);  // values <- the sample of x
void put_sample(const Tensor& x, const Tensor& values, const Draw&);   // the sample of x <- values

}  // namespace skein
