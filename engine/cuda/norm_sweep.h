// How batch norm's kernels walk an image: a warp takes a tile of columns and a piece of the rows, and keeps
// what belongs to its columns in registers. Included by .cu files after engine/loops/launch.h.
#pragma once
#include <cstdint>

#include "engine/cuda/pack.h"

namespace skein::cuda {

// The image [.., C] seen as [rows, columns], where a row is 2^fold pixels, so that few channels
// fill a warp, too.
struct Sweep {
  int64_t rows, columns;
  uint32_t channels, tiles, pieces;
  int fold, each;  // each: rows of a piece

  HD int64_t pixels() const { return rows << fold; }
  HD int64_t first(uint32_t team) const { return int64_t(team / tiles) * each; }
  HD int count(uint32_t team) const {
    const int64_t left = rows - first(team);
    return left < each ? int(left) : each;
  }
  HD int64_t column(uint32_t team, int lane, int lanes, int width) const {
    return (int64_t(team % tiles) * lanes + lane) * width;
  }
  HD uint32_t channel(int64_t column) const { return uint32_t(column) % channels; }
};

// A piece has at least `least` rows.
inline Sweep sweep_of(const Tensor& x, int width, int64_t least) {
  // Enough warps to keep an H200's memory busy. On the host this runs only in tests, one thread per piece.
  const bool gpu = x.device().is_cuda();
  const int64_t lanes = gpu ? 32 : 1, warps = gpu ? 8192 : 16, channels = x.dim(-1);
  int64_t rows = x.size() / channels, columns = channels;
  int fold = 0;
  while (columns * 2 <= 32 * width && rows % 2 == 0) rows /= 2, columns *= 2, ++fold;
  const int64_t tiles = (columns + lanes * width - 1) / (lanes * width),
                wanted = std::max<int64_t>(1, warps / tiles);
  // Longer f32 sums lose accuracy.
  const int64_t each = std::clamp<int64_t>((rows + wanted - 1) / wanted, least, 128),
                pieces = (rows + each - 1) / each;
  CHECK(columns <= INT32_MAX && tiles * pieces <= INT32_MAX, "an image too large for one pass:", x.shape());
  return {rows, columns, uint32_t(channels), uint32_t(tiles), uint32_t(pieces), fold, int(each)};
}
inline Sweep sweep_of(const Tensor& x, int width) { return sweep_of(x, width, 1); }
// The sweep for sums. A piece writes two floats per column: with 16 rows in a piece, these are at most a
// quarter of a 16-bit image.
inline Sweep summing_sweep_of(const Tensor& x, int width) { return sweep_of(x, width, 16); }

// Loads V neighboring floats, four at a time if a pack of pixels has four.
template <int V>
HD void take_floats(const float* from, float (&to)[V]) {
  constexpr int kOnce = V % 4 == 0 ? 4 : 1;
  for (int v = 0; v < V; v += kOnce) {
    const auto some = load<kOnce>(from + v);
    for (int i = 0; i < kOnce; ++i) to[v + i] = some.v[i];
  }
}
template <int V>
HD void keep_floats(float* to, const float (&from)[V]) {
  constexpr int kOnce = V % 4 == 0 ? 4 : 1;
  for (int v = 0; v < V; v += kOnce) {
    Pack<float, kOnce> some;
    for (int i = 0; i < kOnce; ++i) some.v[i] = from[v + i];
    store(to + v, some);
  }
}

// Calls f(at, in) for each row of the team's piece, in order. A Body, which describes what a row needs, has
//   constants = body.column<V>(s, j)    what columns j .. j+V-1 need
//   in = body.take<V>(at)               the loads of V elements from `at` on
//   kAhead                              how many rows are loaded before anything of them is stored: the
//                                       compiler cannot move loads before stores, which may go to the same
//                                       memory
template <int V, class Body, class F>
HD void each_row(const Sweep& s, const Body& body, uint32_t team, int64_t j, F f) {
  int left = s.count(team);
  int64_t at = s.first(team) * s.columns + j;
  for (; left >= Body::kAhead; left -= Body::kAhead) {
    decltype(body.template take<V>(at)) in[Body::kAhead];
#pragma unroll
    for (int a = 0; a < Body::kAhead; ++a) in[a] = body.template take<V>(at + a * s.columns);
#pragma unroll
    for (int a = 0; a < Body::kAhead; ++a, at += s.columns) f(at, in[a]);
  }
#pragma unroll 1
  for (; left > 0; --left, at += s.columns) f(at, body.template take<V>(at));
}

// Two sums per column over each piece of the rows: partial [pieces, 2, columns].
//   body.add(constants, at, in, sum, other)   adds what V elements contribute
template <int V, class Body>
struct TwoSums {
  Sweep s;
  Body body;
  float* partial;
  template <class Team>
  HD void operator()(int64_t t, Team team) const {
    const int64_t j = s.column(uint32_t(t), team.lane(), Team::kLanes, V);
    if (j >= s.columns) return;
    const auto constants = body.template column<V>(s, j);
    float sum[V] = {}, other[V] = {};
    each_row<V>(s, body, uint32_t(t), j,
                [&](int64_t at, const auto& in) { body.template add<V>(constants, at, in, sum, other); });
    float* to = partial + int64_t(uint32_t(t) / s.tiles) * 2 * s.columns + j;
    keep_floats(to, sum), keep_floats(to + s.columns, other);
  }
};

// Calls body.each(constants, at, in) for every V elements.
template <int V, class Body>
struct Each {
  Sweep s;
  Body body;
  template <class Team>
  HD void operator()(int64_t t, Team team) const {
    const int64_t j = s.column(uint32_t(t), team.lane(), Team::kLanes, V);
    if (j >= s.columns) return;
    const auto constants = body.template column<V>(s, j);
    each_row<V>(s, body, uint32_t(t), j,
                [&](int64_t at, const auto& in) { body.template each<V>(constants, at, in); });
  }
};

// Adds up neighboring partial sums in double, [pieces, width] to [chunks, width]. Each lane takes a column,
// so that a warp reads whole cache lines, several at once.
struct Chunks {
  static constexpr int64_t kPieces = 64;  // of a chunk
  const float* partial;
  double* sums;
  int64_t pieces, width;
  HD static int64_t tiles(int64_t width, int lanes) { return (width + lanes - 1) / lanes; }
  template <class Team>
  HD void operator()(int64_t t, Team team) const {
    const uint32_t across = uint32_t(tiles(width, Team::kLanes));
    const int64_t j = int64_t(uint32_t(t) % across) * Team::kLanes + team.lane(),
                  chunk = uint32_t(t) / across;
    if (j >= width) return;
    const int64_t left = pieces - chunk * kPieces;
    const int n = int(left < kPieces ? left : kPieces);
    const float* from = partial + chunk * kPieces * width + j;
    double sum = 0;
#pragma unroll 8
    for (int i = 0; i < n; ++i, from += width) sum += double(*from);
    sums[chunk * width + j] = sum;
  }
};

// One team a channel adds up the chunks, and the pixels of a row, and its first lane calls
// body.finish(channel, sum, other).
template <class Body>
struct Finish {
  Sweep s;
  Body body;
  const double* sums;
  int64_t chunks;
  template <class Team>
  HD void operator()(int64_t c, Team team) const {
    const int64_t n = chunks << s.fold, pixel = (int64_t(1) << s.fold) - 1;
    double sum = 0, other = 0;
#pragma unroll 4
    for (int64_t i = team.lane(); i < n; i += Team::kLanes) {
      const double* from = sums + (i >> s.fold) * 2 * s.columns + (i & pixel) * s.channels + c;
      sum += from[0], other += from[s.columns];
    }
    sum = team.sum(sum), other = team.sum(other);
    if (team.lane() == 0) body.finish(c, sum, other);
  }
};

// Sums in an order that depends on the shape alone: in f32 within a piece, then in double.
template <int V, class Body, class Finisher>
void sum_and_finish(Device d, const Sweep& s, const Body& body, const Finisher& finisher) {
  const int64_t width = 2 * s.columns, chunks = (s.pieces + Chunks::kPieces - 1) / Chunks::kPieces;
  const Tensor partial({s.pieces, width}, kF32, d);
  const Tensor sums({chunks, width}, kI64, d);  // holds doubles, for which tensors have no type
  double* const to = static_cast<double*>(sums.raw());
  for_each_team(d, int64_t(s.tiles) * s.pieces, s.rows * s.columns,
                TwoSums<V, Body>{s, body, partial.data<float>()});
  for_each_team(d, chunks * Chunks::tiles(width, d.is_cuda() ? 32 : 1), partial.size(),
                Chunks{partial.data<float>(), to, s.pieces, width});
  for_each_team(d, s.channels, sums.size(), Finish<Finisher>{s, finisher, to, chunks});
}
template <class T>
T* data_or_null(const Tensor& t) {
  return t ? t.data<T>() : nullptr;
}

template <int V, class Body>
void sweep(Device d, const Sweep& s, const Body& body) {
  for_each_team(d, int64_t(s.tiles) * s.pieces, s.rows * s.columns, Each<V, Body>{s, body});
}

}  // namespace skein::cuda
