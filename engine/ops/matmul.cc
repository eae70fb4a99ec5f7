// Matrix products and the linear layer: shape rules and gradients around gemm.
#include "engine/ops.h"
#include "engine/ops/reduce.h"
#include "engine/tape.h"

namespace skein {

Tensor matmul(const Tensor& a, const Tensor& b) {
  CHECK(a.rank() == 2 && b.rank() == 2 && a.dim(1) == b.dim(0), "matmul of", a.shape(), "and", b.shape());
  Tensor y({a.dim(0), b.dim(1)}, a.dtype(), a.device());
  gemm(y.device(), {.y = y, .a = a, .b = b});
  return record({.op = "matmul", .in = {a, b}, .out = y}, [a, b](const Tensor& dy, Pull& pull) {
    pull(a, [&](const Tensor& da, float beta) {  // dA += dY B'
      gemm(da.device(), {.y = da, .a = dy, .b = b, .tb = true, .beta = beta});
    });
    pull(b, [&](const Tensor& db, float beta) {  // dB += A' dY
      gemm(db.device(), {.y = db, .a = a, .b = dy, .ta = true, .beta = beta});
    });
  });
}

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias) {
  CHECK(x.rank() == 2 && w.rank() == 2 && x.dim(1) == w.dim(1), "linear of x", x.shape(), "and w", w.shape());
  CHECK(!bias || bias.shape() == Shape({w.dim(0)}), "bias", bias.shape(), "of w", w.shape());
  Tensor y({x.dim(0), w.dim(0)}, x.dtype(), x.device());
  gemm(y.device(), {.y = y, .a = x, .b = w, .tb = true, .bias = bias});
  return record({.op = "linear", .in = {x, w, bias}, .out = y}, [x, w, bias](const Tensor& dy, Pull& pull) {
    pull(x,
         [&](const Tensor& dx, float beta) { gemm(dx.device(), {.y = dx, .a = dy, .b = w, .beta = beta}); });
    pull(w, [&](const Tensor& dw, float beta) {
      gemm(dw.device(), {.y = dw, .a = dy, .b = x, .ta = true, .beta = beta});
    });
    pull(bias, [&](const Tensor& db, float beta) { sum_to_shape(db, dy, beta); });
  });
}

}  // namespace skein
