// Sums and means over axes, and their gradients.
#include "engine/ops/reduce.h"

#include <algorithm>

#include "engine/loops/launch.h"
#include "engine/loops/pack.h"
#include "engine/ops.h"
#include "engine/ops/axes.h"
#include "engine/ops/walk.h"
#include "engine/tape.h"

namespace skein {
namespace {

// The most values that one running f32 sum adds up: longer sums are made in pieces, which is more accurate
// and can be done in parallel.
constexpr int64_t kPiece = 4096;
constexpr int64_t kTile = 256;  // columns a host thread keeps sums of

// y[o, p] <- factor * sum of piece p of row o: inner == 1.
template <class Y, class X>
struct SumRows {
  Y* y;
  const X* x;
  int64_t length, pieces;
  float factor, beta;
  template <class Team>
  HD void operator()(int64_t t, Team team) const {
    const int64_t first = t % pieces * kPiece, n = length - first < kPiece ? length - first : kPiece;
    const X* from = x + t / pieces * length + first;
    float s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = team.lane(); i < n; i += Team::kLanes) s += float(from[i]);
    s = team.sum(s);
    if (team.lane() == 0) put(y + t, factor * s, beta);
  }
};

// y[o, p, k] <- factor * sum over piece p of x[o, :, k]. A team takes a tile of columns: a host thread 256 of
// them side by side, a warp 32, one a lane.
template <class Y, class X>
struct SumColumns {
  Y* y;
  const X* x;
  View3 v;
  int64_t piece, pieces;
  float factor, beta;
  HD static int64_t tile(int lanes) { return lanes == 1 ? kTile : lanes; }
  template <class Team>
  HD void operator()(int64_t t, Team team) const {
    constexpr int kMine = Team::kLanes == 1 ? int(kTile) : 1;
    const int64_t tiles = (v.inner + tile(Team::kLanes) - 1) / tile(Team::kLanes);
    const int64_t k = t % tiles * tile(Team::kLanes) + team.lane() * kMine, p = t / tiles % pieces,
                  o = t / tiles / pieces;
    const int64_t left = v.inner - k, width = left < kMine ? left : kMine;
    const int64_t first = p * piece, last = first + piece < v.reduced ? first + piece : v.reduced;
    float sum[kMine] = {};
    for (int64_t r = first; r < last; ++r) {
      const X* from = x + (o * v.reduced + r) * v.inner + k;
      for (int64_t j = 0; j < width; ++j) sum[j] += float(from[j]);
    }
    for (int64_t j = 0; j < width; ++j) put(y + (o * pieces + p) * v.inner + k + j, factor * sum[j], beta);
  }
};

// One pass: y[o, p, k] <- factor * sum over piece p of row o + beta y.
void sum_pieces(const Tensor& y, const Tensor& x, const View3& v, int64_t piece, int64_t pieces, float factor,
                float beta) {
  const int64_t tile = x.device().is_cuda() ? 32 : kTile;
  const int64_t teams = v.outer * pieces * ((v.inner + tile - 1) / tile);
  visit_float(x.dtype(), [&](auto s) {
    visit_float(y.dtype(), [&](auto t) {
      using X = decltype(s);
      using Y = decltype(t);
      if (v.inner == 1)
        for_each_team(x.device(), teams, v.volume(),
                      SumRows<Y, X>{y.data<Y>(), x.data<X>(), v.reduced, pieces, factor, beta});
      else
        for_each_team(x.device(), teams, v.volume(),
                      SumColumns<Y, X>{y.data<Y>(), x.data<X>(), v, piece, pieces, factor, beta});
    });
  });
}

void sum_view(const Tensor& y, const Tensor& x, const View3& v, float factor, float beta) {
  const int64_t piece = v.inner == 1 ? kPiece : std::max<int64_t>(64, kPiece / v.inner);
  const int64_t pieces = std::max<int64_t>(1, (v.reduced + piece - 1) / piece);
  if (pieces == 1) return sum_pieces(y, x, v, piece, 1, factor, beta);
  Tensor partial({v.outer, pieces, v.inner}, kF32, x.device());
  sum_pieces(partial, x, v, piece, pieces, 1, 0);
  sum_view(y, partial, {v.outer, pieces, v.inner}, factor, beta);
}

// V neighbors of a row of y, from as many of x or from one.
template <class Y, class X, int V>
struct SpreadRow {
  Y* y;
  const X* x;
  int64_t step;
  float factor, beta;
  HD void operator()(int64_t c) const {
    if constexpr (V == 1) {
      put(y + c, factor * float(x[c * step]), beta);
    } else {
      float out[V];
      take(out, c * V);
      if (beta != 0) {
        const auto old = load<V>(y + c * V);
        for (int v = 0; v < V; ++v) out[v] += beta * float(old.v[v]);
      }
      store(y + c * V, rounded<Y>(out));
    }
  }
  HD void take(float (&out)[V], int64_t at) const {
    if (step == 0) {
      for (int v = 0; v < V; ++v) out[v] = factor * float(*x);
      return;
    }
    const auto from = load<V>(x + at);
    for (int v = 0; v < V; ++v) out[v] = factor * float(from.v[v]);
  }
};
template <class Y, class X, int V>
struct Spread {
  Walk<1> walk;
  Y* y;
  const X* x;
  float factor, beta;
  HD SpreadRow<Y, X, V> row(int64_t r) const {
    return {y + r * walk.cols, x + walk.at(0, r), walk.step(0), factor, beta};
  }
};

// A GPU's threads write 16 bytes each if they can, because finding the row takes as many
// divisions for one element.
template <class Y, class X>
void spread(const Tensor& y, const Tensor& x, const Walk<1>& walk, float factor, float beta) {
  constexpr int V = 16 / sizeof(Y);
  const int64_t step = walk.step(0);  // 0 or 1, and rows of x begin at multiples of their length
  const auto aligned = [](const Tensor& t) {
    return reinterpret_cast<uintptr_t>(t.address()) % size_t(V * size_of(t.dtype())) == 0;
  };
  const bool packs = y.device().is_cuda() && walk.cols % V == 0 && aligned(y) && (step == 0 || aligned(x));
  if (packs)
    for_each_row(y.device(), walk.rows, walk.cols / V,
                 Spread<Y, X, V>{walk, y.data<Y>(), x.data<X>(), factor, beta});
  else
    for_each_row(y.device(), walk.rows, walk.cols,
                 Spread<Y, X, 1>{walk, y.data<Y>(), x.data<X>(), factor, beta});
}

// The gradient of sum and of mean: every element read gets its share of the sum's.
Tensor add_up(const Tensor& x, const std::vector<int>& axes, bool keep, bool average) {
  const Axes marked = marks(x, axes);
  Tensor y(reduced_shape(x.shape(), marked, keep), x.dtype(), x.device());
  const float factor = average && x.size() > 0 ? float(y.size()) / float(x.size()) : 1.f;
  sum_into(y, x, marked, factor);
  const auto settings = [&] {
    Settings s{{"axes", {}}, {"keep", {double(keep)}}};
    for (int i = 0; i < x.rank(); ++i)
      if (marked[size_t(i)]) s["axes"].push_back(i);
    return s;
  };
  const Operation op{.op = average ? "mean" : "sum", .in = {x}, .out = y, .settings = settings};
  return record(op, [in = Value(x), marked, factor](const Tensor& dy, Pull& pull) {
    pull(in, [&](const Tensor& dx, float beta) { spread_into(dx, dy, marked, factor, beta); });
  });
}

}  // namespace

void sum_into(const Tensor& y, const Tensor& x, const Axes& axes, float factor, float beta) {
  CHECK(y.size() == reduced_shape(x.shape(), axes, false).volume(), y.shape(), x.shape());
  Shape shape = x.shape();
  Axes marked = axes;
  View3 v, next;
  if (!split_innermost(shape, marked, v)) v = {1, 1, x.size()};
  Tensor from = x;
  while (split_innermost(shape, marked, next)) {
    Tensor partial({v.outer, v.inner}, kF32, x.device());
    sum_view(partial, from, v, 1, 0);
    from = partial;
    v = next;
  }
  sum_view(y, from, v, factor, beta);
}

void sum_to_shape(const Tensor& y, const Tensor& x, float beta) {
  Axes marked{};
  const int lead = x.rank() - y.rank();
  for (int i = 0; i < x.rank(); ++i)
    marked[size_t(i)] = i < lead || (y.shape()[i - lead] == 1 && x.shape()[i] != 1);
  sum_into(y, x, marked, 1, beta);
}

void spread_into(const Tensor& y, const Tensor& x, const Axes& marked, float factor, float beta) {
  Strides by{};
  int64_t step = 1;
  for (int i = y.rank() - 1; i >= 0; --i)
    if (!marked[size_t(i)]) {
      by[size_t(i)] = step;
      step *= y.shape()[i];
    }
  CHECK(step == x.size(), y.shape(), x.shape());
  const Walk<1> walk(y.shape(), {by});
  visit_float(y.dtype(), [&](auto s) {
    visit_float(x.dtype(), [&](auto t) { spread<decltype(s), decltype(t)>(y, x, walk, factor, beta); });
  });
}

Tensor sum(const Tensor& x, const std::vector<int>& axes, bool keep) { return add_up(x, axes, keep, false); }
Tensor mean(const Tensor& x, const std::vector<int>& axes, bool keep) { return add_up(x, axes, keep, true); }

}  // namespace skein
