// How batch norm's kernels walk an image: a warp takes a tile of columns and a piece of the rows, and keeps
// what belongs to its columns in registers. Included by .cu files after engine/launch.h.
#pragma once
#include "engine/cuda/pack.h"

namespace skein::cuda {

// The image [.., C] seen as [rows, columns], where a row is `fold` pixels: so few channels fill a warp too.
struct Sweep {
  int64_t rows, columns, channels, fold, tiles, pieces, each;

  HD int64_t first(int64_t t) const { return t / tiles * each; }
  HD int64_t last(int64_t t) const { return first(t) + each < rows ? first(t) + each : rows; }
  HD int64_t piece(int64_t t) const { return t / tiles; }
  HD int64_t column(int64_t t, int lane, int lanes, int width) const {
    return (t % tiles * lanes + lane) * width;
  }
};

inline Sweep sweep_of(const Tensor& x, int width) {
  // Enough warps to keep an H200's memory busy; a host thread walks alone, and only in tests.
  const bool gpu = x.device().is_cuda();
  const int64_t lanes = gpu ? 32 : 1, warps = gpu ? 8192 : 16, channels = x.dim(-1);
  Sweep s{x.size() / channels, channels, channels, 1, 1, 1, 1};
  while (s.columns * 2 <= 32 * width && s.rows % 2 == 0) s.rows /= 2, s.columns *= 2, s.fold *= 2;
  s.tiles = (s.columns + lanes * width - 1) / (lanes * width);
  const int64_t wanted = std::max<int64_t>(1, warps / s.tiles);
  s.each = std::min<int64_t>((s.rows + wanted - 1) / wanted, 128);  // longer f32 sums lose accuracy
  s.pieces = (s.rows + s.each - 1) / s.each;
  return s;
}

// Per column sums of two things over each piece of the rows: partial [pieces, 2, columns]. `Body` gives them:
//   Body::Column<V> c = body.column(j)         constants of columns j .. j+V-1
//   body.add(c, at, sum, other)                adds what the V elements from `at` on contribute
template <int V, class Body>
struct TwoSums {
  Sweep s;
  Body body;
  float* partial;
  template <class Team>
  HD void operator()(int64_t t, Team team) const {
    const int64_t j = s.column(t, team.lane(), Team::kLanes, V);
    if (j >= s.columns) return;
    const auto constants = body.template column<V>(s, j);
    float sum[V] = {}, other[V] = {};
    for (int64_t r = s.first(t); r < s.last(t); ++r)
      body.template add<V>(constants, r * s.columns + j, sum, other);
    float* to = partial + s.piece(t) * 2 * s.columns + j;
    for (int v = 0; v < V; ++v) to[v] = sum[v], to[s.columns + v] = other[v];
  }
};

// Calls body.each(constants, at) for every V elements.
template <int V, class Body>
struct Each {
  Sweep s;
  Body body;
  template <class Team>
  HD void operator()(int64_t t, Team team) const {
    const int64_t j = s.column(t, team.lane(), Team::kLanes, V);
    if (j >= s.columns) return;
    const auto constants = body.template column<V>(s, j);
    for (int64_t r = s.first(t); r < s.last(t); ++r) body.template each<V>(constants, r * s.columns + j);
  }
};

// One team a channel adds up the partial sums in double, in an order that depends on the shape alone, and its
// first lane calls body.finish(channel, sum, other).
template <class Body>
struct Finish {
  Sweep s;
  Body body;
  const float* partial;
  template <class Team>
  HD void operator()(int64_t c, Team team) const {
    double sum = 0, other = 0;
    for (int64_t i = team.lane(); i < s.pieces * s.fold; i += Team::kLanes) {
      const float* from = partial + i / s.fold * 2 * s.columns + i % s.fold * s.channels + c;
      sum += double(from[0]), other += double(from[s.columns]);
    }
    sum = team.sum(sum), other = team.sum(other);
    if (team.lane() == 0) body.finish(c, sum, other);
  }
};

template <int V, class Body, class Finisher>
void sum_and_finish(Device d, const Sweep& s, const Body& body, const Finisher& finisher) {
  const Tensor partial({s.pieces, 2, s.columns}, kF32, d);
  for_each_team(d, s.tiles * s.pieces, s.rows * s.columns, TwoSums<V, Body>{s, body, partial.data<float>()});
  for_each_team(d, s.channels, partial.size(), Finish<Finisher>{s, finisher, partial.data<float>()});
}
template <class T>
T* data_or_null(const Tensor& t) {
  return t ? t.data<T>() : nullptr;
}

template <int V, class Body>
void sweep(Device d, const Sweep& s, const Body& body) {
  for_each_team(d, s.tiles * s.pieces, s.rows * s.columns, Each<V, Body>{s, body});
}

}  // namespace skein::cuda
