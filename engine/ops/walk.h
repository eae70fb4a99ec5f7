// Walk visits several strided operands of one shape row by row, with as few rows as possible.
#pragma once
#include <array>

#include "engine/tensor.h"

namespace skein {

using Strides = std::array<int64_t, Shape::kMaxRank>;

// Strides of a dense tensor, in elements.
Strides dense_strides(const Shape&);
// Strides that read an operand of shape `s` as NumPy broadcasts it to `out`: 0 along repeated axes.
Strides broadcast_strides(const Shape& s, const Shape& out);
// The shape two operands broadcast to; throws Error naming `op` and both shapes if they do not.
Shape broadcast(const char* op, const Shape& a, const Shape& b);

// Neighboring axes that all operands step through evenly are merged, and extents of 1 are dropped; the
// innermost axis that is left is the row. Element (r, c) of operand j lies at at(j, r) + c * step(j).
template <int kOperands>
struct Walk {
  int rank = 1;
  int64_t extents[Shape::kMaxRank] = {1};
  int64_t strides[kOperands][Shape::kMaxRank] = {};
  int64_t rows = 1, cols = 1;

  Walk(const Shape& shape, const std::array<Strides, kOperands>& by) {
    rank = 0;
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == 1) continue;
      bool even = rank > 0;
      for (int j = 0; j < kOperands && even; ++j) even = strides[j][rank - 1] == by[j][i] * shape[i];
      if (!even) extents[rank++] = 1;
      extents[rank - 1] *= shape[i];
      for (int j = 0; j < kOperands; ++j) strides[j][rank - 1] = by[j][i];
    }
    if (rank == 0) {  // a single element: any step will do, and 1 takes the dense path
      rank = 1;
      extents[0] = 1;
      for (int j = 0; j < kOperands; ++j) strides[j][0] = 1;
    }
    cols = extents[rank - 1];
    for (int i = 0; i + 1 < rank; ++i) rows *= extents[i];
  }
  HD int64_t at(int operand, int64_t row) const {
    int64_t offset = 0;
    for (int i = rank - 2; i >= 0; --i) {
      offset += row % extents[i] * strides[operand][i];
      row /= extents[i];
    }
    return offset;
  }
  HD int64_t step(int operand) const { return strides[operand][rank - 1]; }
};

}  // namespace skein
