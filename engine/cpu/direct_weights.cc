// Weight gradients: sums over pixels of (image channels) x (outputs), block by block, a private sum a thread. In pairs
// a cell holds two neighboring pixels of a row, so that both products go into the same sum.
#include <omp.h>

#include "engine/cpu/direct_conv.h"
#include "engine/cpu/window.h"

namespace skein::cpu {

namespace {

// The fewest pixels of a block, of several images if necessary: after each, tiles are added to memory.
constexpr int64_t kLeastPixels = 196;

// How a weight gradient is cut: `taps` window positions of `channels` each, in tiles of up to rows x lanes.
struct Plan {
  CellKind kind;
  const TileKernels& tiles;
  bool merged;  // few channels: a window's row of S x C floats counts as the channels
  int64_t taps, channels, panels;
  Groups groups;
  int64_t slot;  // cells that a pixel has in a group: some more than the rows, so that whole vectors fill it
  int64_t block_cells;                               // in both operands of a block
  std::vector<int64_t> first_channel, first_output;  // of groups and of panels
  Tensor zeros;                                      // a pixel of x or dy outside the image
  int64_t tile() const { return tiles.rows * tiles.lanes; }
  int64_t size() const { return panels * taps * groups.count * tile(); }
  int64_t cells(int64_t pixels) const { return (pixels + kind.elements - 1) / kind.elements; }
};

Plan plan_of(const ConvArgs& c) {
  const int64_t R = c.w.dim(1), S = c.w.dim(2), C = c.w.dim(3), O = c.w.dim(0);
  const bool merged = C < 8 && c.geometry.dilation == 1;
  const CellKind kind = merged ? CellKind::of_floats() : CellKind::of(c);
  const TileKernels& tiles = kind.tiles(O);
  const int64_t channels = merged ? S * C : C, slot = tiles.rows > 8 ? 16 : 8;
  const int64_t all = panels(O, tiles.lanes);
  const Groups groups(channels, tiles.rows);
  std::vector<int64_t> first_channel, first_output;
  for (int64_t i = 0; i < groups.count; ++i) first_channel.push_back(groups.first(i));
  for (int64_t i = 0; i < all; ++i) first_output.push_back(i * tiles.lanes);
  return {kind,       tiles,         merged,       merged ? R : R * S,
          channels,   all,           groups,       merged ? C : slot,
          slot << 13, first_channel, first_output, Tensor::zeros({std::max(C, O)}, c.x.dtype())};
}

// The pixels of one row, and in pairs those beside them; `zeros` where there is none.
struct Row {
  std::vector<const void*> a, b;
  void clear() { a.clear(), b.clear(); }
};

// The thread's buffers, kept from call to call.
struct Memory {
  std::vector<Cell> inputs, outputs;
  Row row;
};

// Some images' rows of outputs, the same rows of each.
struct Block {
  int64_t image, images, first, last;
};

// What a block's tiles read: dy [panel][cell of pixels][lanes], x [group][row][column][slot].
struct Operands {
  const Cell *x, *dy;
  int64_t width, group;  // in x: columns; cells from one group to the next
  Pixels pixels;
};

void pack_row(const Plan& plan, const Row& row, DType t, Cell* to, int64_t group, int64_t slot,
              const std::vector<int64_t>& first, int64_t channels) {
  const bool pairs = plan.kind.elements == 2;
  (pairs ? kernels().pack_pairs : kernels().pack[element(t)])({.to = to,
                                                               .group = group,
                                                               .slot = slot,
                                                               .groups = int64_t(first.size()),
                                                               .columns = int64_t(row.a.size()),
                                                               .channels = channels,
                                                               .first = first.data(),
                                                               .a = row.a.data(),
                                                               .b = pairs ? row.b.data() : nullptr});
}

// Every pixel of a row or, in pairs, every other one and its neighbor.
void take_points(const Plan& plan, const Tensor& t, int64_t from, int64_t step, int64_t count, Row& row) {
  row.clear();
  for (int64_t q = 0; q < count; q += plan.kind.elements) {
    row.a.push_back(at(t, from + q * step));
    row.b.push_back(q + 1 < count ? at(t, from + (q + 1) * step) : plan.zeros.raw());
  }
}

// Windows of one pixel need no neighbors, so only the pixels that are used are packed, in one long row.
Operands pack_points(const ConvArgs& c, const Plan& plan, const Block& b, Memory& memory) {
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3), Q = c.y.dim(2), stride = c.geometry.stride;
  const int64_t all = b.images * (b.last - b.first) * plan.cells(Q), group = all * plan.slot;
  Cell* const x = grow(memory.inputs, plan.groups.count * group);
  Cell* to = x;
  for (int64_t n = b.image; n < b.image + b.images; ++n)
    for (int64_t p = b.first; p < b.last; ++p, to += plan.cells(Q) * plan.slot) {
      take_points(plan, c.x, (n * H + p * stride) * W * C, stride * C, Q, memory.row);
      pack_row(plan, memory.row, c.x.dtype(), to, group, plan.slot, plan.first_channel, plan.channels);
    }
  return {x, memory.outputs.data(), all, group, {1, 1, all, 0, 0, plan.slot}};
}

// One row of a window, zero outside the image. In pairs each column brings along the one that the next output sees.
void take_window(const ConvArgs& c, const Plan& plan, int64_t n, int64_t h, const Rectangle& r, Row& row) {
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3);
  const auto pixel = [&](int64_t w) {
    const bool inside = h >= 0 && h < H && w >= 0 && w < W && w < r.right;
    return inside ? at(c.x, ((n * H + h) * W + w) * C) : plan.zeros.raw();
  };
  row.clear();
  for (int64_t w = r.left; w < r.right; ++w) {
    row.a.push_back(pixel(w));
    row.b.push_back(pixel(w + c.geometry.stride));
  }
}

void put_window_row(const ConvArgs& c, const Plan& plan, int64_t n, int64_t h, const Rectangle& r, Cell* to,
                    int64_t group, Row& row) {
  take_window(c, plan, n, h, r, row);
  if (!plan.merged)
    return pack_row(plan, row, c.x.dtype(), to, group, plan.slot, plan.first_channel, plan.channels);
  visit_float(c.x.dtype(), [&](auto zero) {
    for (const void* pixel : row.a)
      fill_cells(to, static_cast<const decltype(zero)*>(pixel), plan.slot), to += plan.slot;
  });
}

Operands pack_windows(const ConvArgs& c, const Plan& plan, const Block& b, Memory& memory) {
  const auto& g = c.geometry;
  const int64_t S = c.w.dim(2), Q = c.y.dim(2);
  const Rectangle r{b.first * g.stride - g.padding,
                    (b.last - 1) * g.stride - g.padding + (c.w.dim(1) - 1) * g.dilation + 1, -g.padding,
                    (Q - 1) * g.stride - g.padding + (S - 1) * g.dilation + 1};
  const int64_t row = r.width() * plan.slot, image = r.height() * row, group = b.images * image;
  Cell* x = grow(memory.inputs, (plan.merged ? 1 : plan.groups.count) * group + 32);
  for (int64_t i = 0; i < b.images; ++i)
    for (int64_t h = r.top; h < r.bottom; ++h)
      put_window_row(c, plan, b.image + i, h, r, x + i * image + (h - r.top) * row, group, memory.row);
  return {x,
          memory.outputs.data(),
          r.width(),
          group,
          {b.images, b.last - b.first, plan.cells(Q), image, g.stride * row,
           plan.kind.elements * g.stride * plan.slot}};
}

template <class T>
void add_bias(float* bias, const T* dy, int64_t pixels, int64_t O) {
  for (int64_t i = 0; i < pixels; ++i)
    for (int64_t o = 0; o < O; ++o) bias[o] += float(dy[i * O + o]);
}

Operands pack(const ConvArgs& c, const Plan& plan, const Block& b, Memory& memory, float* bias) {
  const int64_t P = c.y.dim(1), Q = c.y.dim(2), O = c.y.dim(3), rows = b.last - b.first;
  const int64_t lanes = plan.tiles.lanes, all = b.images * rows * plan.cells(Q);
  Cell* to = grow(memory.outputs, plan.panels * all * lanes);
  for (int64_t i = 0; i < b.images * rows; ++i, to += plan.cells(Q) * lanes) {
    const int64_t from = ((b.image + i / rows) * P + b.first + i % rows) * Q * O;
    take_points(plan, c.y, from, O, Q, memory.row);
    pack_row(plan, memory.row, c.y.dtype(), to, all * lanes, lanes, plan.first_output, O);
    if (bias)
      visit_float(c.y.dtype(), [&](auto zero) { add_bias(bias, c.y.data<decltype(zero)>() + from, Q, O); });
  }
  const bool points = c.w.dim(1) == 1 && c.w.dim(2) == 1 && c.geometry.padding == 0 && !plan.merged;
  return points ? pack_points(c, plan, b, memory) : pack_windows(c, plan, b, memory);
}

void add_block(const ConvArgs& c, const Plan& plan, const Block& b, float* sum, float* bias, bool add) {
  thread_local Memory memory;
  const Operands from = pack(c, plan, b, memory, bias);
  const int64_t S = c.w.dim(2), cells = from.pixels.planes * from.pixels.rows * from.pixels.columns;
  for (int64_t j = 0; j < plan.panels; ++j)
    for (int64_t t = 0; t < plan.taps; ++t) {
      const int64_t tr = plan.merged ? t : t / S, ts = plan.merged ? 0 : t % S;
      const Cell* shifted = from.x + (tr * from.width + ts) * c.geometry.dilation * plan.slot;
      for (int64_t i = 0; i < plan.groups.count; ++i, sum += plan.tile())
        plan.tiles.outer[plan.groups.size(i) - 1](
            {.x = shifted + (plan.merged ? plan.groups.first(i) : i * from.group),
             .y = from.dy + j * cells * plan.tiles.lanes,
             .at = from.pixels,
             .sums = sum,
             .add = add});
    }
}

// to[i] = the threads' sums, in the order of threads, for i < n.
void add_up(float* to, const float* sums, int64_t n, int64_t step, int64_t threads) {
  std::copy(sums, sums + n, to);
  for (int64_t t = 1; t < threads; ++t)
    for (int64_t i = 0; i < n; ++i) to[i] += sums[t * step + i];
}

// dw [O][tap][channel] <- beta dw + the threads' sums
void gather(const ConvArgs& c, const Plan& plan, const float* sums, int64_t threads) {
  const int64_t O = c.w.dim(0), K = plan.taps * plan.channels, lanes = plan.tiles.lanes;
  const Groups& groups = plan.groups;
#pragma omp parallel for schedule(static) if (c.w.size() > 1 << 14)
  for (int64_t j = 0; j < plan.panels; ++j)
    for (int64_t i = 0; i < plan.taps * groups.count; ++i) {
      constexpr int64_t kWide = 16;  // at least kMostRows
      float tile[kMostRows * kMostLanes], turned[kMostLanes * kWide];
      const int64_t group = i % groups.count, rows = groups.size(group);
      add_up(tile, sums + (j * plan.taps * groups.count + i) * plan.tile(), rows * lanes, plan.size(),
             threads);
      kernels().transpose(reinterpret_cast<Cell*>(turned), kWide, reinterpret_cast<const Cell*>(tile), rows,
                          lanes);
      float* dw = c.w.data<float>() + j * lanes * K + i / groups.count * plan.channels + groups.first(group);
      for (int64_t o = 0; o < std::min(lanes, O - j * lanes); ++o)
        for (int64_t l = 0; l < rows; ++l) {
          float& y = dw[o * K + l];
          const float v = turned[o * kWide + l];
          y = c.beta == 0 ? v : v + c.beta * y;
        }
    }
}

}  // namespace

void direct_backward_weights(const ConvArgs& c) {
  const Plan plan = plan_of(c);
  const int64_t N = c.y.dim(0), P = c.y.dim(1), Q = c.y.dim(2), O = c.y.dim(3);
  const int64_t seen = std::min<int64_t>(c.geometry.stride, c.w.dim(1));
  const int64_t per_row = Q * (O + c.x.dim(3) * seen * seen * 8 / 6);
  const int64_t rows = std::clamp<int64_t>(plan.block_cells / per_row, 1, P), cuts = (P + rows - 1) / rows;
  const int64_t threads = std::min<int64_t>(omp_get_max_threads(), cuts > 1 ? N * cuts : N);
  const int64_t images = cuts > 1 ? 1 : std::clamp<int64_t>(kLeastPixels / (P * Q), 1, N / threads);
  const Tensor sums({threads * plan.size()}), bias = c.bias ? Tensor::zeros({threads, O}) : Tensor();
#pragma omp parallel for schedule(static, 1) num_threads(int(threads))
  for (int64_t t = 0; t < threads; ++t) {
    const int64_t from = N * cuts * t / threads, to = N * cuts * (t + 1) / threads;
    for (int64_t i = from; i < to; i += images) {
      const int64_t first = i % cuts * rows;
      add_block(c, plan, {i / cuts, std::min(images, to - i), first, std::min(first + rows, P)},
                sums.data<float>() + t * plan.size(), bias ? bias.data<float>() + t * O : nullptr, i > from);
    }
  }
  gather(c, plan, sums.data<float>(), threads);
  for (int64_t o = 0; c.bias && o < O; ++o) {
    float v = 0, &y = c.bias.data<float>()[o];
    for (int64_t t = 0; t < threads; ++t) v += bias.data<float>()[t * O + o];
    y = c.beta == 0 ? v : v + c.beta * y;
  }
}

}  // namespace skein::cpu
