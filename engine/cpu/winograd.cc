// Winograd forward and data gradient: blocks of tiles, transformed, multiplied by position, transformed back.
#include "engine/cpu/winograd.h"

#include "engine/cpu/cells.h"
#include "engine/cpu/channel_sums.h"
#include "engine/cpu/winograd_map.h"

namespace skein::cpu {

namespace {

// Both passes compute `out` <- act(3x3 correlation of `in` + bias) + beta out.
struct Job {
  const WinogradKernels& kernel;
  Tensor in, out;
  Tensor weights;  // [position][panel of outputs][depth][lanes]
  int64_t padding;
  Tensor bias;
  float beta = 0;
  bool relu = false;
  ChannelSums sums = {};  // of `out`; may be empty
};

const TileKernels& tiles_for(int64_t outputs) { return CellKind::of_floats().tiles(outputs); }

// Floats of the weights of one position.
int64_t plane_of(int64_t outputs, int64_t depth) {
  const int64_t lanes = tiles_for(outputs).lanes;
  return panels(outputs, lanes) * lanes * depth;
}

// to [9][count][lanes] <- the taps of outputs o to o + lanes for channels from `first` on, 0 beyond the end.
void turn_taps(const Tensor& w, int64_t o, int64_t lanes, int64_t first, int64_t count, float* to) {
  thread_local std::vector<float> kept;
  const int64_t C = w.dim(3), width = std::min(lanes, w.dim(0) - o);
  float* rows = grow(kept, lanes * count);
  for (int64_t tap = 0; tap < 9; ++tap) {
    for (int64_t l = 0; l < width; ++l)
      std::copy_n(w.data<float>() + ((o + l) * 9 + tap) * C + first, count, rows + l * count);
    kernels().transpose(reinterpret_cast<Cell*>(to + tap * count * lanes), lanes,
                        reinterpret_cast<const Cell*>(rows), width, count);
  }
}

// The taps of a panel of outputs are transposed before they are transformed, when they are fewer.
Tensor forward_weights(const WinogradKernels& kernel, const ConvArgs& c) {
  const int64_t O = c.w.dim(0), C = c.w.dim(3), lanes = tiles_for(O).lanes, plane = plane_of(O, C);
  const Tensor packed({kernel.positions * plane});
#pragma omp parallel for schedule(static) if (O * C > 1 << 10)
  for (int64_t j = 0; j < panels(O, lanes); ++j) {
    thread_local std::vector<float> kept;
    constexpr int64_t kAtOnce = 64;  // channels, whose taps fit the first caches
    float* taps = grow(kept, 9 * kAtOnce * lanes);
    for (int64_t first = 0; first < C; first += kAtOnce) {
      const int64_t count = std::min(kAtOnce, C - first);
      turn_taps(c.w, j * lanes, lanes, first, count, taps);
      kernel.filters(taps, count * lanes, count * lanes, false,
                     {packed.data<float>() + (j * C + first) * lanes, plane, 0});
    }
  }
  return packed;
}

// The filters rotated by 180 degrees, with inputs and outputs exchanged.
Tensor data_weights(const WinogradKernels& kernel, const ConvArgs& c) {
  const int64_t O = c.w.dim(0), C = c.w.dim(3), lanes = tiles_for(C).lanes, plane = plane_of(C, O);
  const Shape shape{kernel.positions * plane};
  const Tensor packed = C % lanes ? Tensor::zeros(shape) : Tensor(shape);
#pragma omp parallel for collapse(2) schedule(static) if (O * C > 1 << 10)
  for (int64_t j = 0; j < panels(C, lanes); ++j)
    for (int64_t o = 0; o < O; ++o)
      kernel.filters(c.w.data<float>() + o * 9 * C + j * lanes, C, std::min(lanes, C - j * lanes), true,
                     {packed.data<float>() + (j * O + o) * lanes, plane, 0});
  return packed;
}

// m[tile][output] = sum over depth of v[tile][depth] u, of one position.
void multiply(const TileKernels& tiles, const float* v, const float* u, float* m, int64_t count,
              int64_t depth, int64_t outputs, Ahead& ahead) {
  const int64_t lanes = tiles.lanes, all = panels(outputs, lanes), none = 0;
  const Groups groups(count, tiles.rows);
  for (int64_t j = 0; j < all; ++j)
    for (int64_t g = 0; g < groups.count; ++g) {
      const Cell *in[kMostRows], *next[kMostRows];
      const int64_t first = groups.first(g), rows = groups.size(g);
      const auto* fetch = reinterpret_cast<const Cell*>(ahead.take(rows * depth / kLineCells));
      for (int64_t i = 0; i < rows; ++i) {
        in[i] = reinterpret_cast<const Cell*>(v + (first + i) * depth);
        next[i] = fetch ? fetch + i * depth : in[i];
      }
      tiles.product({.rows = rows,
                     .in = in,
                     .tap = &none,
                     .taps = 1,
                     .depth = depth,
                     .weights = reinterpret_cast<const Cell*>(u + j * depth * lanes),
                     .sums = m + first * all * lanes + j * lanes,
                     .sums_step = all * lanes,
                     .add = false,
                     .next = next});
    }
}

void run(const Job& job) {
  const int64_t C = job.in.dim(3), O = job.out.dim(3), P = job.out.dim(1), Q = job.out.dim(2);
  const TileKernels& tiles = tiles_for(O);
  const WinogradKernels& kernel = job.kernel;
  const int64_t positions = kernel.positions;
  const size_t e = element(job.in.dtype());
  const Tensor zeros = Tensor::zeros({C}, job.in.dtype());
  const WinogradMap in = map_of(job.in, kernel.side, job.padding, P, Q, zeros),
                    out = map_of(job.out, kernel.side, 0, P, Q, {});
  const int64_t all = in.per_image() * job.out.dim(0), most = tiles_at_once(all, 48, positions * (C + O));
  const int64_t threads = omp_get_max_threads();
  const int64_t wide = panels(O, tiles.lanes) * tiles.lanes, u = plane_of(O, C);
  BlockSums sums(job.sums, (all + most - 1) / most);
#pragma omp parallel for schedule(dynamic)
  for (int64_t first = 0; first < all; first += most) {
    thread_local std::vector<float> inputs, products;
    const int64_t count = std::min(most, all - first);
    const WinogradPlanes v{grow(inputs, positions * (most * C + kSkew)), most * C + kSkew, C};
    const WinogradPlanes m{grow(products, positions * (most * wide + kSkew)), most * wide + kSkew, wide};
    kernel.input[e](in, first, count, v);
    Ahead ahead;  // threads take blocks in turn, so this one continues about there
    fetch_tiles(in, job.in, kernel.side, first + most * threads, most, ahead);
    fetch_tiles(out, job.out, kernel.side, first, count, ahead);
    for (int64_t i = 0; i < positions; ++i)
      multiply(tiles, v.at + i * v.plane, job.weights.data<float>() + i * u, m.at + i * m.plane, count, C, O,
               ahead);
    const float* bias = job.bias ? job.bias.data<float>() : nullptr;
    kernel.output[e](out, first, count, m, {bias, job.beta, job.relu, sums.of(first / most)});
  }
  sums.finish();
}

}  // namespace

bool winograd_fits(const ConvArgs& c) {
  const auto& g = c.geometry;
  return c.w.dim(1) == 3 && c.w.dim(2) == 3 && g.stride == 1 && g.dilation == 1 && g.groups == 1 &&
         g.padding <= 2 && c.w.dim(3) % 8 == 0 && c.w.dim(0) % 8 == 0;
}

void winograd_forward(const ConvArgs& c) {
  const WinogradKernels& kernel = winograd_for(c.y.dim(1), c.y.dim(2));
  run({kernel, c.x, c.y, forward_weights(kernel, c), c.geometry.padding, c.bias, 0, c.relu, c.sums});
}

void winograd_backward_data(const ConvArgs& c) {
  const WinogradKernels& kernel = winograd_for(c.x.dim(1), c.x.dim(2));
  run({kernel, c.y, c.x, data_weights(kernel, c), 2 - c.geometry.padding, {}, c.beta, false});
}

}  // namespace skein::cpu
