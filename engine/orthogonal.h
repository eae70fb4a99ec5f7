// The orthogonal matrix nearest to a matrix, roughly: Newton and Schulz's iteration as Muon uses it.
#pragma once
#include "engine/tensor.h"

namespace skein {

// x <- X after `steps` of   A = X X',  X <- a X + (b A + c A^2) X,   (a, b, c) = (3.4445, -4.7750, 2.0315),
// for x [rows, columns] f32 of norm 1 at most: its singular values go to within about [0.7, 1.2], except
// for the smallest; a zero matrix stays zero. Products run on the smaller side. Work of x's device, which
// can be recorded.
void newton_schulz(const Tensor& x, int steps);

}  // namespace skein
