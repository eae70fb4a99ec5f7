// Pooling of one row of an image: each output, or in backward each input, gathers from its windows, so threads never
// write the same element.
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

template <class V, class T>
void pool_maximum(const PoolPlane& a, int64_t p) {
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
void pool_average(const PoolPlane& a, int64_t p) {
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

template <class V, class T, bool kAverage>
void pool_gradient(const PoolPlane& a, int64_t r) {
  const T* dy = static_cast<const T*>(a.in);
  Span ps{0, 0}, qs{0, 0};
  a.advance(r, a.P, ps);
  for (int64_t s = 0; s < a.W; ++s) {
    a.advance(s, a.Q, qs);
    T* dx = static_cast<T*>(a.out) + (r * a.W + s) * a.C;
    each_part<V>(a.C, [&](int64_t c, auto io) {
      V sum{};
      each_in(ps, qs, [&](int64_t p, int64_t q) {
        const int64_t at = (p * a.Q + q) * a.C + c;
        if constexpr (kAverage)
          sum += a.shares[p * a.Q + q] * io.get(dy + at);
        else
          sum += io.get_bytes(a.argmax + at) == a.place(p, q, r, s) ? io.get(dy + at) : V{};
      });
      if (a.beta != 0) sum += a.beta * io.get(dx + c);
      io.put(dx + c, sum);
    });
  }
}

template <class V, class T>
constexpr PoolKernels pool_kernels() {
  return {pool_maximum<V, T>, pool_average<V, T>, pool_gradient<V, T, false>, pool_gradient<V, T, true>};
}

}  // namespace skein::cpu
