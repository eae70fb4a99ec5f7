// Sums over axes without a tape, for the gradients of broadcasting operations.
#pragma once
#include <array>

#include "engine/tensor.h"

namespace skein {

// Which axes are summed over.
using Axes = std::array<bool, Shape::kMaxRank>;

// y <- factor * (x summed over the marked axes) + beta y. y has the unmarked extents in order, any floating
// type; sums are in f32, in an order that depends on the shape alone. With beta 0, y is not read.
void sum_into(const Tensor& y, const Tensor& x, const Axes&, float factor = 1, float beta = 0);

// y <- (x summed to the shape that was broadcast to x's) + beta y.
void sum_to_shape(const Tensor& y, const Tensor& x, float beta = 0);

// y <- factor * (x repeated along the marked axes of y) + beta y.
void spread_into(const Tensor& y, const Tensor& x, const Axes&, float factor = 1, float beta = 0);

}  // namespace skein
