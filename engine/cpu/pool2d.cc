// Our own pooling: each output, or in backward each input, gathers from its windows, so threads never
// write the same element.
#include <algorithm>
#include <cmath>

#include "engine/cpu/profile.h"
#include "engine/ops/pool2d.h"

namespace skein::cpu {

namespace {

constexpr int64_t kBlock = 64;  // channels worked on at once, in registers or the first cache level

struct Range {
  int64_t first, last;
};
// Input positions of window p that lie inside [0, n).
Range window(const PoolArgs& a, int64_t p, int64_t n) {
  const int64_t at = p * a.stride - a.padding;
  return {std::max<int64_t>(at, 0), std::min<int64_t>(at + a.size, n)};
}
// Windows of [0, count) that contain input position i.
Range windows_over(const PoolArgs& a, int64_t i, int64_t count) {
  const int64_t low = i + a.padding - a.size + 1;
  return {low <= 0 ? 0 : (low + a.stride - 1) / a.stride, std::min((i + a.padding) / a.stride + 1, count)};
}

void check(const PoolArgs& a, const Tensor& in, const Tensor& out) {
  check_pool(a, in, out);
  for (int axis : {1, 2}) {
    const int64_t last = (out.dim(axis) - 1) * a.stride - a.padding;
    CHECK(last < in.dim(axis), "the last window lies outside:", in.shape(), out.shape());
  }
}

template <class T>
void max_at(const PoolArgs& a, int64_t n, int64_t p, int64_t q) {
  const int64_t H = a.x.dim(1), W = a.x.dim(2), C = a.x.dim(3);
  const Range h = window(a, p, H), w = window(a, q, W);
  const int64_t out = ((n * a.y.dim(1) + p) * a.y.dim(2) + q) * C;
  const T* x = a.x.data<T>() + n * H * W * C;
  for (int64_t from = 0; from < C; from += kBlock) {
    const int64_t width = std::min(kBlock, C - from);
    float best[kBlock];
    int32_t place[kBlock];
    for (int64_t i = 0; i < width; ++i) best[i] = -INFINITY, place[i] = -1;
    for (int64_t r = h.first; r < h.last; ++r)
      for (int64_t s = w.first; s < w.last; ++s) {
        const T* row = x + (r * W + s) * C + from;
        const int32_t here = int32_t((r - p * a.stride + a.padding) * a.size + s - q * a.stride + a.padding);
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) {
          const float v = float(row[i]);
          // A NaN wins and stays; of equal values the first wins.
          const bool more = !(v <= best[i]) || place[i] < 0;
          const bool take = more && best[i] == best[i];
          best[i] = take ? v : best[i];
          place[i] = take ? here : place[i];
        }
      }
    T* y = a.y.data<T>() + out + from;
    for (int64_t i = 0; i < width; ++i) y[i] = T(best[i]);
    if (!a.argmax) continue;
    uint8_t* to = a.argmax.data<uint8_t>() + out + from;
    for (int64_t i = 0; i < width; ++i) to[i] = uint8_t(place[i]);
  }
}

template <class T>
void average_at(const PoolArgs& a, int64_t n, int64_t p, int64_t q) {
  const int64_t H = a.x.dim(1), W = a.x.dim(2), C = a.x.dim(3);
  const Range h = window(a, p, H), w = window(a, q, W);
  const float scale = 1.f / float((h.last - h.first) * (w.last - w.first));
  const T* x = a.x.data<T>() + n * H * W * C;
  T* y = a.y.data<T>() + ((n * a.y.dim(1) + p) * a.y.dim(2) + q) * C;
  for (int64_t from = 0; from < C; from += kBlock) {
    const int64_t width = std::min(kBlock, C - from);
    float sum[kBlock] = {};
    for (int64_t r = h.first; r < h.last; ++r)
      for (int64_t s = w.first; s < w.last; ++s) {
        const T* row = x + (r * W + s) * C + from;
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) sum[i] += float(row[i]);
      }
    for (int64_t i = 0; i < width; ++i) y[from + i] = T(sum[i] * scale);
  }
}

// What window (p, q) gives to input (r, s), added to `sum`.
template <class T>
void collect(const PoolArgs& a, int64_t n, int64_t p, int64_t q, int64_t r, int64_t s, int64_t from,
             int64_t width, float* sum) {
  const int64_t C = a.dx.dim(3), at = ((n * a.dy.dim(1) + p) * a.dy.dim(2) + q) * C + from;
  const T* dy = a.dy.data<T>() + at;
  if (a.average) {
    const Range h = window(a, p, a.dx.dim(1)), w = window(a, q, a.dx.dim(2));
    const float scale = 1.f / float((h.last - h.first) * (w.last - w.first));
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) sum[i] += scale * float(dy[i]);
    return;
  }
  const uint8_t* place = a.argmax.data<uint8_t>() + at;
  const int here = int((r - p * a.stride + a.padding) * a.size + s - q * a.stride + a.padding);
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) sum[i] += place[i] == here ? float(dy[i]) : 0.f;
}

template <class T>
void gradient_at(const PoolArgs& a, int64_t n, int64_t r, int64_t s) {
  const int64_t C = a.dx.dim(3);
  const Range ps = windows_over(a, r, a.dy.dim(1)), qs = windows_over(a, s, a.dy.dim(2));
  T* dx = a.dx.data<T>() + ((n * a.dx.dim(1) + r) * a.dx.dim(2) + s) * C;
  for (int64_t from = 0; from < C; from += kBlock) {
    const int64_t width = std::min(kBlock, C - from);
    float sum[kBlock] = {};
    for (int64_t p = ps.first; p < ps.last; ++p)
      for (int64_t q = qs.first; q < qs.last; ++q) collect<T>(a, n, p, q, r, s, from, width, sum);
    for (int64_t i = 0; i < width; ++i)
      dx[from + i] = T(sum[i] + (a.beta == 0 ? 0.f : a.beta * float(dx[from + i])));
  }
}

}  // namespace

void pool2d_forward(const PoolArgs& a) {
  const Timed timed(profile()[kPool]);
  check(a, a.x, a.y);
  const int64_t P = a.y.dim(1), rows = a.y.dim(0) * P, Q = a.y.dim(2);
  visit_float(a.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
#pragma omp parallel for schedule(static) if (a.x.size() > (1 << 15))
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t q = 0; q < Q; ++q)
        a.average ? average_at<T>(a, i / P, i % P, q) : max_at<T>(a, i / P, i % P, q);
  });
}

void pool2d_backward(const PoolArgs& a) {
  const Timed timed(profile()[kPool]);
  check(a, a.dx, a.dy);
  CHECK(a.average || a.argmax, "a maximum's gradient needs argmax from the forward pass");
  const int64_t H = a.dx.dim(1), rows = a.dx.dim(0) * H, W = a.dx.dim(2);
  visit_float(a.dx.dtype(), [&](auto zero) {
    using T = decltype(zero);
#pragma omp parallel for schedule(static) if (a.dx.size() > (1 << 15))
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t s = 0; s < W; ++s) gradient_at<T>(a, i / H, i % H, s);
  });
}

}  // namespace skein::cpu
