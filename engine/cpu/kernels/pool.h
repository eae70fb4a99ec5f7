// Pooling of one row of an image: each output, or in backward each input, gathers from its windows, so
// threads never write the same element.
#pragma once
#include "engine/cpu/kernels.h"
#include "engine/cpu/kernels/part.h"

namespace skein::cpu {

// Calls f(row, column) for the elements of a window.
template <class F>
[[gnu::always_inline]] inline void each_in(const Span& h, const Span& w, const F& f) {
  for (int64_t r = h.first; r < h.last; ++r)
    for (int64_t s = w.first; s < w.last; ++s) f(r, s);
}

// The elements of a window, or the windows that contain an element: how far each is from the first, and what
// argmax says if the element is the window's largest. Neighbors that see as far on either side share them.
struct Gathered {
  static constexpr int kMost = 256;  // places are bytes, so a window has at most 16 x 16
  int count = 0;
  int64_t at[kMost];
  uint32_t place[kMost];
  Span last_seen{0, -1};

  // `seen` is columns `w` as seen from the element or window at hand.
  template <class Place>
  [[gnu::always_inline]] void renew(const Span& seen, const Span& h, const Span& w, int64_t row,
                                    int64_t pixel, const Place& place_of) {
    if (seen == last_seen) return;
    last_seen = seen, count = 0;
    each_in(h, w, [&](int64_t r, int64_t s) {
      at[count] = (r - h.first) * row + (s - w.first) * pixel;
      place[count++] = place_of(r, s);
    });
  }
};

// The planes are copied, so that no store of bytes can change them and they stay in registers.
template <class V, class T>
void pool_maximum(const PoolPlane& plane, int64_t p) {
  const PoolPlane a = plane;
  using Words = WordsOf<V>;
  const Span h = a.inside(p, a.H);
  const T* x = static_cast<const T*>(a.in);
  Gathered window;
  for (int64_t q = 0; q < a.Q; ++q) {
    const Span w = a.inside(q, a.W);
    window.renew({w.first - q * a.stride, w.last - q * a.stride}, h, w, a.W * a.C, a.C,
                 [&](int64_t r, int64_t s) { return a.place(p, q, r, s); });
    const int64_t out = (p * a.Q + q) * a.C;
    const T* from = x + (h.first * a.W + w.first) * a.C;
    each_part<V>(a.C, [&](int64_t c, auto io) {
      V best = io.get(from + c);
      Words place = Words{} + window.place[0];
      for (int i = 1; i < window.count; ++i) {
        const V v = io.get(from + window.at[i] + c);
        const auto take =
            ~(v <= best) & (best == best);  // A NaN wins and stays; of equal values the first wins.
        best = take ? v : best;
        place = take ? Words{} + window.place[i] : place;
      }
      io.put(static_cast<T*>(a.out) + out + c, best, a.past_caches);
      if (a.argmax) io.put_bytes(a.argmax + out + c, place);
    });
  }
}

template <class V, class T>
void pool_average(const PoolPlane& plane, int64_t p) {
  const PoolPlane a = plane;
  const Span h = a.inside(p, a.H);
  const T* x = static_cast<const T*>(a.in);
  for (int64_t q = 0; q < a.Q; ++q) {
    const Span w = a.inside(q, a.W);
    each_part<V>(a.C, [&](int64_t c, auto io) {
      V sum{};
      each_in(h, w, [&](int64_t r, int64_t s) { sum += io.get(x + (r * a.W + s) * a.C + c); });
      io.put(static_cast<T*>(a.out) + (p * a.Q + q) * a.C + c, sum * a.shares[p * a.Q + q], a.past_caches);
    });
  }
}

// Columns a stride apart have windows at the same distances, so they are taken one after another.
template <class V, class T>
void pool_maximum_gradient(const PoolPlane& plane, int64_t r) {
  const PoolPlane a = plane;
  const T* dy = static_cast<const T*>(a.in);
  Span ps{0, 0};
  a.advance(r, a.P, ps);
  for (int64_t first = 0; first < std::min<int64_t>(a.stride, a.W); ++first) {
    Gathered windows;
    Span qs{0, 0};
    for (int64_t s = first; s < a.W; s += a.stride) {
      a.advance(s, a.Q, qs);
      windows.renew({qs.first * a.stride - s, qs.last * a.stride - s}, ps, qs, a.Q * a.C, a.C,
                    [&](int64_t p, int64_t q) { return a.place(p, q, r, s); });
      const int64_t from = (ps.first * a.Q + qs.first) * a.C;
      T* dx = static_cast<T*>(a.out) + (r * a.W + s) * a.C;
      each_part<V>(a.C, [&](int64_t c, auto io) {
        V sum{};
        for (int i = 0; i < windows.count; ++i) {
          const int64_t at = from + windows.at[i] + c;
          sum += io.get_bytes(a.argmax + at) == windows.place[i] ? io.get(dy + at) : V{};
        }
        if (a.beta != 0) sum += a.beta * io.get(dx + c);
        io.put(dx + c, sum, a.past_caches);
      });
    }
  }
}

template <class V, class T>
void pool_average_gradient(const PoolPlane& plane, int64_t r) {
  const PoolPlane a = plane;
  const T* dy = static_cast<const T*>(a.in);
  Span ps{0, 0}, qs{0, 0};
  a.advance(r, a.P, ps);
  for (int64_t s = 0; s < a.W; ++s) {
    a.advance(s, a.Q, qs);
    T* dx = static_cast<T*>(a.out) + (r * a.W + s) * a.C;
    each_part<V>(a.C, [&](int64_t c, auto io) {
      V sum{};
      each_in(ps, qs, [&](int64_t p, int64_t q) {
        sum += a.shares[p * a.Q + q] * io.get(dy + (p * a.Q + q) * a.C + c);
      });
      if (a.beta != 0) sum += a.beta * io.get(dx + c);
      io.put(dx + c, sum, a.past_caches);
    });
  }
}

template <class V, class T>
constexpr PoolKernels pool_kernels() {
  return {pool_maximum<V, T>, pool_average<V, T>, pool_maximum_gradient<V, T>, pool_average_gradient<V, T>};
}

}  // namespace skein::cpu
