// Max, average and global average pooling of images NHWC.
#include "engine/ops/pool2d.h"

#include <utility>

#include "engine/ops.h"
#include "engine/tape.h"

namespace skein {

void check_pool(const PoolArgs& a, const Tensor& in, const Tensor& out) {
  CHECK(in.rank() == 4 && out.rank() == 4 && in.dim(0) == out.dim(0) && in.dim(3) == out.dim(3), in.shape(),
        out.shape());
  CHECK(in.size() > 0 || out.size() == 0, "windows of an image without pixels:", in.shape(), out.shape());
  CHECK(in.dtype() == out.dtype(), in.dtype(), out.dtype());
  CHECK(a.size >= 1 && a.stride >= 1 && 2 * a.padding <= a.size, "size, stride, padding:", a.size, a.stride,
        a.padding);
  CHECK(a.average || a.size <= 16, "the place of a maximum is kept in 8 bits: windows up to 16, not", a.size);
  CHECK(!a.argmax || (a.argmax.shape() == out.shape() && a.argmax.dtype() == kU8), a.argmax.shape());
}

namespace {

// Windows that fit into `in` padded on both sides. In ceil mode a last window may hang over the end,
// but not begin there.
int64_t windows(int64_t in, const Pool& p) {
  const int64_t span = in + 2 * p.padding - p.size;
  int64_t n = (p.ceil_mode ? span + p.stride - 1 : span) / p.stride + 1;
  if (p.ceil_mode && (n - 1) * p.stride >= in + p.padding) --n;
  return n;
}

Tensor pool2d(const Tensor& x, const Pool& p, bool average) {
  CHECK(x.rank() == 4, "pooling wants [N,H,W,C], not", x.shape());
  CHECK(p.size > 0 && p.stride > 0 && p.padding >= 0 && 2 * p.padding <= p.size, "size", p.size, "stride",
        p.stride, "padding", p.padding);
  CHECK(average || p.size <= 16, "positions in a window are kept in a byte; size", p.size);
  CHECK(x.dim(1) + 2 * p.padding >= p.size && x.dim(2) + 2 * p.padding >= p.size, "a window of", p.size,
        "is larger than the image", x.shape(), "with padding", p.padding);
  PoolArgs a;
  a.x = x;
  a.size = p.size;
  a.stride = p.stride;
  a.padding = p.padding;
  a.ceil_mode = p.ceil_mode;
  a.average = average;
  const Shape shape{x.dim(0), windows(x.dim(1), p), windows(x.dim(2), p), x.dim(3)};
  a.y = Tensor(shape, x.dtype(), x.device());
  if (!average) a.argmax = Tensor(shape, kU8, x.device());
  pool2d_forward(x.device(), a);
  const auto settings = [&p]() -> Settings {
    return {{"size", {double(p.size)}},
            {"stride", {double(p.stride)}},
            {"padding", {double(p.padding)}},
            {"ceil_mode", {double(p.ceil_mode)}}};
  };
  const Tensor y = std::exchange(a.y, {});
  a.x = {};  // the gradient reads neither
  const Operation op{.op = average ? "avg_pool2d" : "max_pool2d", .in = {x}, .out = y, .settings = settings};
  return record(op, [a, in = Value(x)](const Tensor& dy, Pull& pull) {
    pull(in, [&](const Tensor& dx, float beta) {
      PoolArgs back = a;
      back.dy = dy;
      back.dx = dx;
      back.beta = beta;
      pool2d_backward(dx.device(), back);
    });
  });
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Pool p) { return pool2d(x, p, false); }
Tensor avg_pool2d(const Tensor& x, Pool p) { return pool2d(x, p, true); }

Tensor global_avg_pool(const Tensor& x) {
  CHECK(x.rank() == 4, "pooling wants [N,H,W,C], not", x.shape());
  return mean(x, {1, 2});
}

}  // namespace skein
