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

// The planes are copied, so that no store of bytes can change them and they stay in registers.
template <class V, class T>
void pool_maximum(const PoolPlane& plane, int64_t p) {
  const PoolPlane a = plane;
  using Words = WordsOf<V>;
  const Span h = a.inside(p, a.H);
  const T* x = static_cast<const T*>(a.in);
  for (int64_t q = 0; q < a.Q; ++q) {
    const Span w = a.inside(q, a.W);
    const int64_t out = (p * a.Q + q) * a.C;
    each_part<V>(a.C, [&](int64_t c, auto io) {
      V best = io.get(x + (h.first * a.W + w.first) * a.C + c);
      Words place = Words{} + a.place(p, q, h.first, w.first);
      each_in(h, w, [&](int64_t r, int64_t s) {
        const V v = io.get(x + (r * a.W + s) * a.C + c);
        const auto take =
            ~(v <= best) & (best == best);  // A NaN wins and stays; of equal values the first wins.
        best = take ? v : best;
        place = take ? Words{} + a.place(p, q, r, s) : place;
      });
      io.put(static_cast<T*>(a.out) + out + c, best);
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
      io.put(static_cast<T*>(a.out) + (p * a.Q + q) * a.C + c, sum * a.shares[p * a.Q + q]);
    });
  }
}

// A window that contains the position at hand.
template <class T>
struct Containing {
  const T* dy;
  const uint8_t* argmax;
  uint32_t place;  // what argmax says if the position is the largest
};

template <class V, class T>
void pool_maximum_gradient(const PoolPlane& plane, int64_t r) {
  const PoolPlane a = plane;
  constexpr int kMost = 256;  // places are bytes, so a window has at most 16 x 16
  Containing<T> windows[kMost];
  Span ps{0, 0}, qs{0, 0};
  a.advance(r, a.P, ps);
  for (int64_t s = 0; s < a.W; ++s) {
    a.advance(s, a.Q, qs);
    int count = 0;
    each_in(ps, qs, [&](int64_t p, int64_t q) {
      const int64_t at = (p * a.Q + q) * a.C;
      windows[count++] = {static_cast<const T*>(a.in) + at, a.argmax + at, a.place(p, q, r, s)};
    });
    T* dx = static_cast<T*>(a.out) + (r * a.W + s) * a.C;
    each_part<V>(a.C, [&](int64_t c, auto io) {
      V sum{};
      for (int i = 0; i < count; ++i) {
        const Containing<T>& w = windows[i];
        sum += io.get_bytes(w.argmax + c) == w.place ? io.get(w.dy + c) : V{};
      }
      if (a.beta != 0) sum += a.beta * io.get(dx + c);
      io.put(dx + c, sum);
    });
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
      io.put(dx + c, sum);
    });
  }
}

template <class V, class T>
constexpr PoolKernels pool_kernels() {
  return {pool_maximum<V, T>, pool_average<V, T>, pool_maximum_gradient<V, T>, pool_average_gradient<V, T>};
}

}  // namespace skein::cpu
