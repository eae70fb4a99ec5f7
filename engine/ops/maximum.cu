// Maxima over axes and their positions.
#include <cstdint>

#include "engine/loops/launch.h"
#include "engine/ops.h"
#include "engine/ops/axes.h"
#include "engine/tape.h"

namespace skein {
namespace {

// y and the position of the first maximum of each column of a View3. A NaN counts as the largest.
template <class X>
struct MaxColumns {
  X* y;
  int32_t* at;
  const X* x;
  View3 v;
  HD void operator()(int64_t i) const {
    const X* from = x + i / v.inner * v.reduced * v.inner + i % v.inner;
    float best = float(from[0]);
    int64_t where = 0;
    for (int64_t r = 1; r < v.reduced; ++r) {
      const float value = float(from[r * v.inner]);
      if (value > best || (value != value && best == best)) best = value, where = r;
    }
    if (y) y[i] = X(best);
    at[i] = int32_t(where);
  }
};
template <class X>
struct MaxColumnsBack {
  X* dx;
  const X* dy;
  const int32_t* at;
  View3 v;
  float beta;
  HD void operator()(int64_t i) const {
    const int64_t k = i % v.inner, r = i / v.inner % v.reduced, o = i / v.inner / v.reduced;
    const int64_t column = o * v.inner + k;
    put(dx + i, at[column] == r ? float(dy[column]) : 0.f, beta);
  }
};

void max_view(const Tensor& y, const Tensor& at, const Tensor& x, const View3& v) {
  CHECK(v.reduced > 0 && v.reduced <= INT32_MAX, "the maximum of no values, or of too many:", x.shape());
  visit_float(x.dtype(), [&](auto t) {
    using X = decltype(t);
    for_each(x.device(), v.outer * v.inner,
             MaxColumns<X>{y ? y.data<X>() : nullptr, at.data<int32_t>(), x.data<X>(), v});
  });
}

// One link of the chain, with a tape entry of its own.
Tensor max_link(const Tensor& x, const View3& v, const Shape& shape) {
  Tensor y(shape, x.dtype(), x.device()), at(shape, kI32, x.device());
  max_view(y, at, x, v);
  return record({.op = "max", .in = {x}, .out = y}, [in = Value(x), at, v](const Tensor& dy, Pull& pull) {
    pull(in, [&](const Tensor& dx, float beta) {
      visit_float(dx.dtype(), [&](auto t) {
        using X = decltype(t);
        for_each(dx.device(), dx.size(),
                 MaxColumnsBack<X>{dx.data<X>(), dy.data<X>(), at.data<int32_t>(), v, beta});
      });
    });
  });
}

}  // namespace

Tensor max(const Tensor& x, const std::vector<int>& axes, bool keep) {
  Axes marked = marks(x, axes);
  Shape left = x.shape();
  View3 v;
  Tensor y = x;
  while (split_innermost(left, marked, v)) y = max_link(y, v, left);
  return reshape(y, reduced_shape(x.shape(), marks(x, axes), keep));
}

Tensor argmax(const Tensor& x, int axis) {
  const Axes marked = marks(x, {axis});
  View3 v;
  const int a = axis < 0 ? axis + x.rank() : axis;
  for (int i = 0; i < x.rank(); ++i) (i < a ? v.outer : i > a ? v.inner : v.reduced) *= x.shape()[i];
  Tensor at(reduced_shape(x.shape(), marked, false), kI32, x.device());
  max_view({}, at, x, v);
  return at;
}

}  // namespace skein
