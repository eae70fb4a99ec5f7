// Pooling: each output, or in backward each input, gathers from its windows; a thread has a pack of channels.
#include "engine/launch.h"

#include "engine/backend.h"
#include "engine/cuda/pack.h"

namespace skein::cuda {
namespace {

struct Range {
  int64_t first, last;
};

// The geometry in plain numbers. `h`, `w` are the input's extents, `p`, `q` the output's.
struct Windows {
  int64_t h, w, c, p, q;
  int size, stride, padding;
  HD Range inside(int64_t window, int64_t extent) const {  // of the window, positions in the image
    const int64_t at = window * stride - padding;
    return {at < 0 ? 0 : at, at + size < extent ? at + size : extent};
  }
  HD Range over(int64_t position, int64_t count) const {  // windows that contain the position
    const int64_t low = position + padding - size + 1, high = (position + padding) / stride + 1;
    return {low <= 0 ? 0 : (low + stride - 1) / stride, high < count ? high : count};
  }
  HD int place(int64_t r, int64_t s, int64_t p_, int64_t q_) const {
    return int((r - p_ * stride + padding) * size + s - q_ * stride + padding);
  }
};

Windows windows_of(const PoolArgs& a, const Tensor& in, const Tensor& out) {
  CHECK(in.rank() == 4 && out.rank() == 4 && in.dim(0) == out.dim(0) && in.dim(3) == out.dim(3), in.shape(),
        out.shape());
  CHECK(in.dtype() == out.dtype(), in.dtype(), out.dtype());
  CHECK(a.size >= 1 && a.stride >= 1 && 2 * a.padding <= a.size, "size, stride, padding:", a.size, a.stride,
        a.padding);
  CHECK(a.average || a.size <= 16, "the place of a maximum is kept in 8 bits: windows up to 16, not", a.size);
  CHECK(!a.argmax || (a.argmax.shape() == out.shape() && a.argmax.dtype() == kU8), a.argmax.shape());
  return {in.dim(1), in.dim(2), in.dim(3), out.dim(1), out.dim(2), a.size, a.stride, a.padding};
}

// Where the i-th pack of an image [.., rows, columns, c] lies.
struct Place {
  int64_t n, row, column, channel;
  HD Place(int64_t i, int64_t rows, int64_t columns, int64_t packs, int width)
      : n(i / packs / columns / rows),
        row(i / packs / columns % rows),
        column(i / packs % columns),
        channel(i % packs * width) {}
};

template <class T, int V>
struct MaxPool {
  Windows k;
  const T* x;
  T* y;
  uint8_t* argmax;
  HD void operator()(int64_t i) const {
    const Place o(i, k.p, k.q, k.c / V, V);
    const Range h = k.inside(o.row, k.h), w = k.inside(o.column, k.w);
    float best[V];
    int place[V];
    for (int v = 0; v < V; ++v) best[v] = -HUGE_VALF, place[v] = -1;
    for (int64_t r = h.first; r < h.last; ++r)
      for (int64_t s = w.first; s < w.last; ++s) {
        const auto in = load<V>(x + ((o.n * k.h + r) * k.w + s) * k.c + o.channel);
        const int here = k.place(r, s, o.row, o.column);
        for (int v = 0; v < V; ++v) {
          const float f = float(in.v[v]);
          // A NaN wins and stays; of equals the first.
          const bool take = (!(f <= best[v]) || place[v] < 0) && best[v] == best[v];
          best[v] = take ? f : best[v];
          place[v] = take ? here : place[v];
        }
      }
    Pack<T, V> out;
    Pack<uint8_t, V> at;
    for (int v = 0; v < V; ++v) out.v[v] = T(best[v]), at.v[v] = uint8_t(place[v]);
    store(y + i * V, out);
    if (argmax) store(argmax + i * V, at);
  }
};

template <class T, int V>
struct AveragePool {
  Windows k;
  const T* x;
  T* y;
  HD void operator()(int64_t i) const {
    const Place o(i, k.p, k.q, k.c / V, V);
    const Range h = k.inside(o.row, k.h), w = k.inside(o.column, k.w);
    float sum[V] = {};
    for (int64_t r = h.first; r < h.last; ++r)
      for (int64_t s = w.first; s < w.last; ++s) {
        const auto in = load<V>(x + ((o.n * k.h + r) * k.w + s) * k.c + o.channel);
        for (int v = 0; v < V; ++v) sum[v] += float(in.v[v]);
      }
    const float scale = 1.f / float((h.last - h.first) * (w.last - w.first));
    Pack<T, V> out;
    for (int v = 0; v < V; ++v) out.v[v] = T(sum[v] * scale);
    store(y + i * V, out);
  }
};

template <class T, int V, bool kAverage>
struct PoolGradient {
  Windows k;
  const T* dy;
  const uint8_t* argmax;
  T* dx;
  float beta;
  HD void operator()(int64_t i) const {
    const Place at(i, k.h, k.w, k.c / V, V);
    const Range ps = k.over(at.row, k.p), qs = k.over(at.column, k.q);
    float sum[V] = {};
    for (int64_t p = ps.first; p < ps.last; ++p)
      for (int64_t q = qs.first; q < qs.last; ++q) {
        const int64_t from = ((at.n * k.p + p) * k.q + q) * k.c + at.channel;
        const auto g = load<V>(dy + from);
        if constexpr (kAverage) {
          const Range h = k.inside(p, k.h), w = k.inside(q, k.w);
          const float scale = 1.f / float((h.last - h.first) * (w.last - w.first));
          for (int v = 0; v < V; ++v) sum[v] += scale * float(g.v[v]);
        } else {
          const auto place = load<V>(argmax + from);
          const int here = k.place(at.row, at.column, p, q);
          for (int v = 0; v < V; ++v) sum[v] += place.v[v] == here ? float(g.v[v]) : 0.f;
        }
      }
    Pack<T, V> out;
    if (beta != 0) {
      const auto old = load<V>(dx + i * V);
      for (int v = 0; v < V; ++v) sum[v] += beta * float(old.v[v]);
    }
    for (int v = 0; v < V; ++v) out.v[v] = T(sum[v]);
    store(dx + i * V, out);
  }
};

}  // namespace

void pool2d_forward(const PoolArgs& a) {
  const Windows k = windows_of(a, a.x, a.y);
  if (a.y.size() == 0) return;
  with_packs(k.c, {&a.x, &a.y, &a.argmax}, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int V = decltype(width)::value;
    const Device d = a.y.device();
    const int64_t n = a.y.size() / V;
    if (a.average)
      for_each(d, n, AveragePool<T, V>{k, a.x.data<T>(), a.y.data<T>()});
    else
      for_each(d, n,
               MaxPool<T, V>{k, a.x.data<T>(), a.y.data<T>(), a.argmax ? a.argmax.data<uint8_t>() : nullptr});
  });
}

void pool2d_backward(const PoolArgs& a) {
  const Windows k = windows_of(a, a.dx, a.dy);
  CHECK(a.average || a.argmax, "a maximum's gradient needs argmax from the forward pass");
  if (a.dx.size() == 0) return;
  with_packs(k.c, {&a.dx, &a.dy, &a.argmax}, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int V = decltype(width)::value;
    const Device d = a.dx.device();
    const int64_t n = a.dx.size() / V;
    if (a.average)
      for_each(d, n, PoolGradient<T, V, true>{k, a.dy.data<T>(), nullptr, a.dx.data<T>(), a.beta});
    else
      for_each(
          d, n,
          PoolGradient<T, V, false>{k, a.dy.data<T>(), a.argmax.data<uint8_t>(), a.dx.data<T>(), a.beta});
  });
}

}  // namespace skein::cuda
