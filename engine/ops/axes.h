// Reductions over any axes are chains of steps over one run of axes each, innermost first. For .cu files.
#pragma once
#include <vector>

#include "engine/ops/reduce.h"

namespace skein {

// A dense tensor seen as [outer, reduced, inner]; every reduction is a chain of these, innermost axes first.
struct View3 {
  int64_t outer = 1, reduced = 1, inner = 1;
  int64_t volume() const { return outer * reduced * inner; }
};

// Splits off the innermost run of marked axes and removes them from `shape` and `marked`; false
// if none is marked.
inline bool split_innermost(Shape& shape, Axes& marked, View3& v) {
  int last = shape.rank();
  while (last > 0 && !(marked[size_t(last - 1)] && shape[last - 1] != 1)) --last;
  if (last == 0) return false;
  int first = last;
  while (first > 0 && (marked[size_t(first - 1)] || shape[first - 1] == 1)) --first;
  v = {};
  for (int i = 0; i < shape.rank(); ++i) (i < first ? v.outer : i < last ? v.reduced : v.inner) *= shape[i];
  for (int i = first; i < last; ++i) shape[i] = 1;
  return true;
}

inline Axes marks(const Tensor& x, const std::vector<int>& axes) {
  Axes marked{};
  if (axes.empty()) marked.fill(true);
  for (int a : axes) {
    const int i = a < 0 ? a + x.rank() : a;
    CHECK(i >= 0 && i < x.rank(), "axis", a, "of", x.shape());
    marked[size_t(i)] = true;
  }
  return marked;
}

inline Shape reduced_shape(const Shape& s, const Axes& marked, bool keep) {
  std::vector<int64_t> left;
  for (int i = 0; i < s.rank(); ++i) {
    if (!marked[size_t(i)])
      left.push_back(s[i]);
    else if (keep)
      left.push_back(1);
  }
  return Shape(left);
}

template <class T>
HD void put(T* y, float value, float beta) {
  *y = T(beta != 0 ? value + beta * float(*y) : value);
}

}  // namespace skein
