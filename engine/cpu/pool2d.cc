// Our own pooling, row by row.
#include "engine/ops/pool2d.h"
#include "engine/cpu/kernels.h"
#include "engine/cpu/profile.h"
#include "engine/cpu/simd.h"
#include "engine/past_caches.h"

namespace skein::cpu {

namespace {

void check(const PoolArgs& a, const Tensor& in, const Tensor& out) {
  check_pool(a, in, out);
  for (int axis : {1, 2}) {
    const int64_t last = (out.dim(axis) - 1) * a.stride - a.padding;
    CHECK(last < in.dim(axis), "the last window lies outside:", in.shape(), out.shape());
  }
}

PoolPlane plane_of(const PoolArgs& a, const Tensor& image, const Tensor& result) {
  return {.in = nullptr,
          .out = nullptr,
          .argmax = nullptr,
          .shares = nullptr,
          .H = image.dim(1),
          .W = image.dim(2),
          .P = result.dim(1),
          .Q = result.dim(2),
          .C = image.dim(3),
          .size = a.size,
          .stride = a.stride,
          .padding = a.padding,
          .beta = a.beta,
          .past_caches = false};
}

std::vector<float> shares_of(const PoolPlane& a) {
  std::vector<float> shares;
  for (int64_t p = 0; p < a.P; ++p)
    for (int64_t q = 0; q < a.Q; ++q) {
      const Span h = a.inside(p, a.H), w = a.inside(q, a.W);
      shares.push_back(1.f / float((h.last - h.first) * (w.last - w.first)));
    }
  return shares;
}

// Calls `row` for every row of every image of `to`, which has as many images as `from`.
void run(PoolPlane plane, const Tensor& from, const Tensor& to, const Tensor& argmax,
         void (*row)(const PoolPlane&, int64_t)) {
  const int64_t images = to.dim(0), rows = to.dim(1);
  const auto image = [images](const Tensor& t, int64_t n) {
    return t ? static_cast<uint8_t*>(t.raw()) + t.bytes() / images * n : nullptr;
  };
  const bool whole_lines = plane.C * size_of(to.dtype()) % kLineBytes == 0;
  plane.past_caches = whole_lines && plane.beta == 0 && past_caches(to);
#pragma omp parallel firstprivate(plane) if (std::max(from.size(), to.size()) > (1 << 15))
  {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < images * rows; ++i) {
      const int64_t n = i / rows;
      plane.in = image(from, n), plane.out = image(to, n), plane.argmax = image(argmax, n);
      row(plane, i % rows);
    }
    fence_streams<V8>();
  }
}

}  // namespace

void pool2d_forward(const PoolArgs& a) {
  check(a, a.x, a.y);
  const Counted counted(kPool, 0, bytes_of(a.x, a.y, a.argmax));
  const PoolKernels& kernel = kernels().pool[element(a.x.dtype())];
  PoolPlane plane = plane_of(a, a.x, a.y);
  const std::vector<float> shares = a.average ? shares_of(plane) : std::vector<float>();
  plane.shares = shares.data();
  run(plane, a.x, a.y, a.argmax, a.average ? kernel.average : kernel.maximum);
}

void pool2d_backward(const PoolArgs& a) {
  check(a, a.dx, a.dy);
  const Counted counted(kPool, 0, bytes_of(a.dx, a.dy, a.argmax));
  CHECK(a.average || a.argmax, "a maximum's gradient needs argmax from the forward pass");
  const PoolKernels& kernel = kernels().pool[element(a.dx.dtype())];
  PoolPlane plane = plane_of(a, a.dx, a.dy);
  const std::vector<float> shares = a.average ? shares_of(plane) : std::vector<float>();
  plane.shares = shares.data();
  run(plane, a.dy, a.dx, a.argmax, a.average ? kernel.average_gradient : kernel.maximum_gradient);
}

}  // namespace skein::cpu
