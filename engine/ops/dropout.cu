// Dropout. Backward draws the mask again instead of keeping it.
#include "engine/loops/launch.h"
#include "engine/ops.h"
#include "engine/tape.h"

namespace skein {
namespace {

// Four elements share a block of random words. Element i is kept if draw.unit(i) >= p.
template <class T>
struct Mask {
  T* y;
  const T* x;
  int64_t n;
  Draw draw;
  float p, factor;
  bool add;
  HD void operator()(int64_t quad) const {
    const Philox4 words = draw.block(uint32_t(quad));
    const int64_t first = 4 * quad, count = n - first < 4 ? n - first : 4;
    for (int64_t j = 0; j < count; ++j) {
      const float v = unit_float(words.v[j]) >= p ? factor * float(x[first + j]) : 0.f;
      y[first + j] = T(add ? float(y[first + j]) + v : v);
    }
  }
};

void mask(const Tensor& y, const Tensor& x, float p, const Draw& draw, bool add) {
  visit_float(x.dtype(), [&](auto t) {
    using T = decltype(t);
    for_each(x.device(), (x.size() + 3) / 4,
             Mask<T>{y.data<T>(), x.data<T>(), x.size(), draw, p, 1 / (1 - p), add});
  });
}

}  // namespace

Tensor dropout(const Tensor& x, float p, const Draw& draw) {
  CHECK(p >= 0 && p < 1, "dropout of", p, "is not in [0, 1)");
  if (p == 0) return x;
  Tensor y(x.shape(), x.dtype(), x.device());
  mask(y, x, p, draw, false);
  return record({.op = "dropout", .in = {x}, .out = y},
                [in = Value(x), p, draw](const Tensor& dy, Pull& pull) {
                  pull(in, [&](const Tensor& dx, float beta) { mask(dx, dy, p, draw, beta != 0); });
                });
}

}  // namespace skein
