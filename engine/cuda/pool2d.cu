// Pooling: each output, or in backward each input, gathers from its windows; a thread takes
// a pack of channels.
#include "engine/loops/launch.h"

#include "engine/cuda/pack.h"
#include "engine/ops/pool2d.h"

namespace skein::cuda {
namespace {

struct Range {
  int first, last;
};

// The geometry in plain numbers. `h`, `w` are the input's extents, `p`, `q` the output's. Positions in one
// image fit 32 bits, and a 64-bit division costs several times as much; a batch may be larger.
struct Windows {
  int h, w, c, p, q, size, stride, padding;
  HD int begin(int window) const { return window * stride - padding; }
  HD Range inside(int window, int extent) const {  // of the window, positions in the image
    const int at = begin(window);
    return {at < 0 ? 0 : at, at + size < extent ? at + size : extent};
  }
  HD Range over(int position, int count) const {  // windows that contain the position
    const unsigned by = unsigned(stride), high = unsigned(position + padding) / by + 1;
    const int low = position + padding - size + 1;
    return {low <= 0 ? 0 : int((unsigned(low) + by - 1) / by), int(high) < count ? int(high) : count};
  }
};

Windows windows_of(const PoolArgs& a, const Tensor& in, const Tensor& out) {
  check_pool(a, in, out);
  for (const Tensor* t : {&in, &out})
    CHECK(t->size() / std::max<int64_t>(1, t->dim(0)) <= INT32_MAX / 2,
          "one image is too large to pool:", t->shape());
  return {int(in.dim(1)),  int(in.dim(2)), int(in.dim(3)), int(out.dim(1)),
          int(out.dim(2)), a.size,         a.stride,       a.padding};
}

// Walks a result [.., rows, columns, packs of V]: a team takes a row and each lane every 32nd pack of it, so
// that only finding the row takes a division. body.each(image, row, column, channel) gathers for a pack.
template <int V, class Body>
struct EachPack {
  Body body;
  int rows, columns, packs;
  template <class Team>
  HD void operator()(int64_t t, Team team) const {
    const int64_t image = t / rows;
    const int row = int(t - image * rows), across = Team::kLanes / packs, further = Team::kLanes % packs;
    int column = team.lane() / packs, pack = team.lane() % packs;
    while (column < columns) {
      body.each(image, row, column, pack * V);
      column += across, pack += further;
      if (pack >= packs) pack -= packs, ++column;
    }
  }
};
template <int V, class Body>
void each_pack(const Tensor& result, const Body& body) {
  const int rows = int(result.dim(1)), columns = int(result.dim(2)), packs = int(result.dim(3) / V);
  for_each_team(result.device(), result.dim(0) * rows, result.size(),
                EachPack<V, Body>{body, rows, columns, packs});
}

template <class T, int V>
struct MaxPool {
  Windows k;
  const T* x;
  T* y;
  uint8_t* argmax;
  HD void each(int64_t image, int row, int column, int channel) const {
    const Range h = k.inside(row, k.h), w = k.inside(column, k.w);
    const T* const from = x + image * k.h * k.w * k.c + channel;
    const int top = k.begin(row), left = k.begin(column);
    float best[V];
    int place[V];
    for (int v = 0; v < V; ++v) best[v] = -HUGE_VALF, place[v] = -1;
    for (int r = h.first; r < h.last; ++r)
      for (int s = w.first; s < w.last; ++s) {
        const auto in = load<V>(from + (r * k.w + s) * k.c);
        const int here = (r - top) * k.size + s - left;
        for (int v = 0; v < V; ++v) {
          const float f = float(in.v[v]);
          // A NaN wins and stays; of equal values the first wins.
          const bool take = (!(f <= best[v]) || place[v] < 0) && best[v] == best[v];
          best[v] = take ? f : best[v];
          place[v] = take ? here : place[v];
        }
      }
    const int64_t to = ((image * k.p + row) * k.q + column) * k.c + channel;
    store(y + to, rounded<T>(best));
    if (!argmax) return;
    Pack<uint8_t, V> at;
    for (int v = 0; v < V; ++v) at.v[v] = uint8_t(place[v]);
    store(argmax + to, at);
  }
};

template <class T, int V>
struct AveragePool {
  Windows k;
  const T* x;
  T* y;
  HD void each(int64_t image, int row, int column, int channel) const {
    const Range h = k.inside(row, k.h), w = k.inside(column, k.w);
    const T* const from = x + image * k.h * k.w * k.c + channel;
    float sum[V] = {};
    for (int r = h.first; r < h.last; ++r)
      for (int s = w.first; s < w.last; ++s) {
        const auto in = load<V>(from + (r * k.w + s) * k.c);
        for (int v = 0; v < V; ++v) sum[v] += float(in.v[v]);
      }
    const float scale = 1.f / float((h.last - h.first) * (w.last - w.first));
    for (int v = 0; v < V; ++v) sum[v] *= scale;
    store(y + ((image * k.p + row) * k.q + column) * k.c + channel, rounded<T>(sum));
  }
};

template <class T, int V, bool kAverage>
struct PoolGradient {
  Windows k;
  const T* dy;
  const uint8_t* argmax;
  T* dx;
  float beta;
  HD void each(int64_t image, int row, int column, int channel) const {
    const Range ps = k.over(row, k.p), qs = k.over(column, k.q);
    const int64_t first = image * k.p * k.q * k.c + channel;
    float sum[V] = {};
    for (int p = ps.first; p < ps.last; ++p)
      for (int q = qs.first; q < qs.last; ++q) {
        const int64_t from = first + (p * k.q + q) * k.c;
        const auto g = load<V>(dy + from);
        if constexpr (kAverage) {
          const Range h = k.inside(p, k.h), w = k.inside(q, k.w);
          const float scale = 1.f / float((h.last - h.first) * (w.last - w.first));
          for (int v = 0; v < V; ++v) sum[v] += scale * float(g.v[v]);
        } else {
          const auto place = load<V>(argmax + from);
          const int here = (row - k.begin(p)) * k.size + column - k.begin(q);
          for (int v = 0; v < V; ++v)
            if (place.v[v] == here) sum[v] += float(g.v[v]);
        }
      }
    T* const to = dx + ((image * k.h + row) * k.w + column) * k.c + channel;
    if (beta != 0) {
      const auto old = load<V>(to);
      for (int v = 0; v < V; ++v) sum[v] += beta * float(old.v[v]);
    }
    store(to, rounded<T>(sum));
  }
};

}  // namespace

void pool2d_forward(const PoolArgs& a) {
  const Windows k = windows_of(a, a.x, a.y);
  if (a.y.size() == 0) return;
  with_packs(k.c, {&a.x, &a.y, &a.argmax}, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int V = decltype(width)::value;
    if (a.average)
      each_pack<V>(a.y, AveragePool<T, V>{k, a.x.data<T>(), a.y.data<T>()});
    else
      each_pack<V>(
          a.y, MaxPool<T, V>{k, a.x.data<T>(), a.y.data<T>(), a.argmax ? a.argmax.data<uint8_t>() : nullptr});
  });
}

void pool2d_backward(const PoolArgs& a) {
  const Windows k = windows_of(a, a.dx, a.dy);
  CHECK(a.average || a.argmax, "a maximum's gradient needs argmax from the forward pass");
  if (a.dx.size() == 0) return;
  with_packs(k.c, {&a.dx, &a.dy, &a.argmax}, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int V = decltype(width)::value;
    if (a.average)
      each_pack<V>(a.dx, PoolGradient<T, V, true>{k, a.dy.data<T>(), nullptr, a.dx.data<T>(), a.beta});
    else
      each_pack<V>(a.dx, PoolGradient<T, V, false>{k, a.dy.data<T>(), a.argmax.data<uint8_t>(),
                                                   a.dx.data<T>(), a.beta});
  });
}

}  // namespace skein::cuda
