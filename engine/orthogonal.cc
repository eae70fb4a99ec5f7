// Newton and Schulz's iteration by matrix products.
#include "engine/orthogonal.h"

#include <algorithm>

#include "engine/backend.h"
#include "engine/vectors/vec.h"

namespace skein {
namespace {

constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;

}  // namespace

void newton_schulz(const Tensor& x, int steps) {
  CHECK(x.rank() == 2 && x.dtype() == kF32 && steps >= 0, x.shape(), x.dtype(), steps);
  const bool tall = x.dim(0) > x.dim(1);
  const int64_t n = std::min(x.dim(0), x.dim(1));
  const Device d = x.device();
  const Tensor a({n, n}, kF32, d), b({n, n}, kF32, d), y(x.shape(), kF32, d);
  for (int i = 0; i < steps; ++i) {
    gemm(d, {.y = a, .a = x, .b = x, .ta = tall, .tb = !tall});
    copy(b, a);
    gemm(d, {.y = b, .a = a, .b = a, .beta = kB / kC});
    scale(b, kC);  // b = b A + c A^2
    copy(y, x);
    gemm(d, {.y = y, .a = tall ? x : b, .b = tall ? b : x, .beta = kA});
    copy(x, y);
  }
}

}  // namespace skein
