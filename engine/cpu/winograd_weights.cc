// Winograd weight gradients: dU = sum over tiles of V x (A dy A'), an outer product a position;
// then G' dU G.
#include "engine/cpu/cells.h"
#include "engine/cpu/direct_conv.h"
#include "engine/cpu/private_sums.h"
#include "engine/cpu/winograd.h"
#include "engine/cpu/winograd_map.h"

namespace skein::cpu {

namespace {

// How dU is cut: for each position [panel of outputs][group of channels] tiles of rows x lanes.
struct Cut {
  const WinogradKernels& kernel;
  const TileKernels& tiles;
  int64_t panels;
  Groups groups;
  int64_t tile() const { return tiles.rows * tiles.lanes; }
  int64_t plane() const { return panels * groups.count * tile(); }
};

Cut cut_of(const ConvArgs& c) {
  const int64_t C = c.x.dim(3), O = c.y.dim(3);
  const TileKernels& tiles = CellKind::of_floats().tiles(O);
  return {winograd_for(c.y.dim(1), c.y.dim(2)), tiles, panels(O, tiles.lanes), Groups(C, tiles.rows)};
}

struct Maps {
  WinogradMap x, dy;
};

void add_block(const ConvArgs& c, const Cut& cut, const Maps& maps, int64_t first, int64_t count, float* sum,
               bool add, Ahead& ahead) {
  thread_local std::vector<float> inputs, spread;
  const int64_t C = c.x.dim(3), lanes = cut.tiles.lanes, positions = cut.kernel.positions,
                x_plane = count * C + kSkew, dy_plane = cut.panels * count * lanes + kSkew;
  const WinogradPlanes x{grow(inputs, positions * x_plane), x_plane, C},
      dy{grow(spread, positions * dy_plane), dy_plane, 0};
  const size_t e = element(c.x.dtype());
  cut.kernel.input[e](maps.x, first, count, x);
  cut.kernel.spread[e](maps.dy, first, count, dy, lanes);
  for (int64_t i = 0; i < positions; ++i)
    for (int64_t j = 0; j < cut.panels; ++j)
      for (int64_t g = 0; g < cut.groups.count; ++g, sum += cut.tile())
        cut.tiles.outer[cut.groups.size(g) - 1](
            {.x = reinterpret_cast<const Cell*>(x.at + i * x_plane + cut.groups.first(g)),
             .y = reinterpret_cast<const Cell*>(dy.at + i * dy_plane + j * count * lanes),
             .at = {1, 1, count, 0, 0, C},
             .y_step = lanes,
             .sums = sum,
             .add = add,
             .fetch = ahead.take(count)});
}

// The filters of one tile of dU, whose sums of the first position begin at `from`: [9][rows][lanes].
void gather_tile(const Cut& cut, const PrivateSums& sums, int64_t from, int64_t n, float* to) {
  const int positions = cut.kernel.positions;
  float u[kMostPositions * kMostRows * kMostLanes];
  for (int p = 0; p < positions; ++p) sums.total(from + p * cut.plane(), n, u + p * n);
  cut.kernel.gather({u, n, 0}, n, to);
}

// dw <- beta dw + G' (the threads' sums) G.
void gather(const ConvArgs& c, const Cut& cut, const PrivateSums& sums) {
  const int64_t O = c.w.dim(0), C = c.w.dim(3), lanes = cut.tiles.lanes;
#pragma omp parallel for schedule(static) if (C * O > 1 << 10)
  for (int64_t j = 0; j < cut.panels; ++j)
    for (int64_t g = 0; g < cut.groups.count; ++g) {
      constexpr int64_t kWide = 16;  // at least kMostRows
      float filters[9 * kMostRows * kMostLanes], turned[kMostLanes * kWide];
      const int64_t rows = cut.groups.size(g), n = rows * lanes;
      gather_tile(cut, sums, (j * cut.groups.count + g) * cut.tile(), n, filters);
      for (int p = 0; p < 9; ++p) {
        kernels().transpose(reinterpret_cast<Cell*>(turned), kWide,
                            reinterpret_cast<const Cell*>(filters + p * n), rows, lanes);
        float* dw = c.w.data<float>() + (j * lanes * 9 + p) * C + cut.groups.first(g);
        for (int64_t o = 0; o < std::min(lanes, O - j * lanes); ++o)
          for (int64_t l = 0; l < rows; ++l) settle(dw[o * 9 * C + l], turned[o * kWide + l], c.beta);
      }
    }
}

}  // namespace

void winograd_backward_weights(const ConvArgs& c) {
  const Cut cut = cut_of(c);
  const int64_t positions = cut.kernel.positions, side = cut.kernel.side, P = c.y.dim(1), Q = c.y.dim(2);
  const Tensor zeros = Tensor::zeros({std::max(c.x.dim(3), c.y.dim(3))}, c.x.dtype());
  const Maps maps{map_of(c.x, side, c.geometry.padding, P, Q, zeros), map_of(c.y, side, 0, P, Q, zeros)};
  const int64_t all = maps.x.per_image() * c.y.dim(0),
                most = tiles_at_once(all, 72, positions * (c.x.dim(3) + c.y.dim(3)));
  const auto make = [&](int64_t i, int64_t, int64_t end, float* sums, bool add) {
    Ahead ahead;
    if (i + 1 < end) {
      fetch_tiles(maps.x, c.x, side, (i + 1) * most, most, ahead);
      fetch_tiles(maps.dy, c.y, side, (i + 1) * most, most, ahead);
    }
    add_block(c, cut, maps, i * most, std::min(most, all - i * most), sums, add, ahead);
  };
  gather(c, cut, PrivateSums(positions * cut.plane(), (all + most - 1) / most, 1, make));
}

}  // namespace skein::cpu
