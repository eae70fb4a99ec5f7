// Weight gradients: sums over pixels of (image channels) x (outputs), block by block, a private sum a thread.
// In pairs a cell holds two neighboring pixels, so that both products go into the same sum.
#include "engine/cpu/ahead.h"
#include "engine/cpu/amx_weights.h"
#include "engine/cpu/direct_conv.h"
#include "engine/cpu/private_sums.h"
#include "engine/cpu/window.h"

namespace skein::cpu {

namespace {

// A block has about so many pixels or more, if necessary of several images, because after each block all its
// tiles are added to memory.
constexpr int64_t kFewest = 196;

// How a weight gradient is cut: `taps` window positions of `channels` each, in tiles of up to rows x lanes.
struct Plan {
  CellKind kind;
  const TileKernels& tiles;
  bool merged;     // few channels: a window's row of S x C floats counts as the channels
  bool pointwise;  // windows of one pixel, which need no neighbors
  int64_t taps, channels, panels;
  Groups groups;
  int64_t slot;  // cells that a pixel has in a group: some more than the rows, so that whole vectors fill it
  int64_t block_cells;                               // in both operands of a block
  std::vector<int64_t> first_channel, first_output;  // of groups and of panels
  Tensor zeros;                                      // a pixel of x or dy outside the image
  int64_t tile() const { return tiles.rows * tiles.lanes; }
  int64_t size() const { return panels * taps * groups.count * tile(); }
  // Where a tile lies among the sums: in the order in which they are added to.
  int64_t place(int64_t group, int64_t panel, int64_t tap) const {
    return ((panel * taps + tap) * groups.count + group) * tile();
  }
  int64_t pixel() const { return merged ? slot : groups.count * slot; }  // cells of x in all groups
  int64_t cells(int64_t pixels) const { return (pixels + kind.elements - 1) / kind.elements; }
};

Plan plan_of(const ConvArgs& c) {
  const int64_t R = c.w.dim(1), S = c.w.dim(2), C = c.w.dim(3), O = c.w.dim(0);
  const bool merged = C < 8 && c.geometry.dilation == 1;
  const bool pointwise = R * S == 1 && c.geometry.padding == 0 && !merged;
  const CellKind kind = merged ? CellKind::of_floats() : CellKind::of(c);
  const TileKernels& tiles = kind.tiles(O);
  const int64_t channels = merged ? S * C : C, slot = tiles.rows > 8 ? 16 : 8;
  const int64_t all = panels(O, tiles.lanes);
  const Groups groups(channels, tiles.rows);
  std::vector<int64_t> first_channel, first_output;
  for (int64_t i = 0; i < groups.count; ++i) first_channel.push_back(groups.first(i));
  for (int64_t i = 0; i < all; ++i) first_output.push_back(i * tiles.lanes);
  return {kind,
          tiles,
          merged,
          pointwise,
          merged ? R : R * S,
          channels,
          all,
          groups,
          merged ? C : slot,
          slot << 13,
          first_channel,
          first_output,
          Tensor::zeros({std::max(C, O)}, c.x.dtype())};
}

// Some pixels, and in pairs those beside them; `zeros` where there is none.
struct Points {
  std::vector<const void*> a, b;
  void clear() { a.clear(), b.clear(); }
};

// The thread's buffers, kept from call to call.
struct Memory {
  std::vector<Cell> inputs, outputs;
  Points seen;
};

// Some images' rows of outputs, the same rows of each.
struct Piece {
  int64_t image, images, first, last;
};

// What a block's tiles read: dy [panel][cell of pixels][lanes], x [group][row][column][slot]; or all channels
// side by side, as in the images themselves. Each panel meets all groups in turn.
struct Operands {
  const Cell *x, *dy;
  bool packed;
  int64_t width;  // in x: columns
  Pixels pixels;
  int64_t group;           // cells from one group of x to the next, if it is packed
  int64_t panel, dy_step;  // in dy: cells from one panel and from one pixel to the next
};

// Packs the same channels of all pixels: from first[g] on for each of some groups.
void pack_pixels(const Plan& plan, const Points& points, DType t, Cell* to, int64_t slot,
                 const std::vector<int64_t>& first, int64_t channels) {
  const bool pairs = plan.kind.elements == 2;
  const int64_t columns = int64_t(points.a.size());
  (pairs ? kernels().pack_pairs : kernels().pack[element(t)])({.to = to,
                                                               .group = columns * slot,
                                                               .slot = slot,
                                                               .groups = int64_t(first.size()),
                                                               .columns = columns,
                                                               .channels = channels,
                                                               .first = first.data(),
                                                               .a = points.a.data(),
                                                               .b = pairs ? points.b.data() : nullptr});
}

// Adds every pixel of a row or, in pairs, every other one and its neighbor.
void take_row(const Plan& plan, const Tensor& t, int64_t from, int64_t step, int64_t count, Points& points) {
  for (int64_t q = 0; q < count; q += plan.kind.elements) {
    points.a.push_back(at(t, from + q * step));
    points.b.push_back(q + 1 < count ? at(t, from + (q + 1) * step) : plan.zeros.raw());
  }
}

// Adds the pixels of x or dy at which a piece has results, `stride` apart. In pairs neighbors of a row share
// a cell or, where windows of one pixel see every one, neighbors in memory.
void take_pixels(const ConvArgs& c, const Plan& plan, const Tensor& t, const Piece& b, int64_t stride,
                 Points& points) {
  const int64_t H = t.dim(1), row = t.dim(2) * t.dim(3), rows = b.last - b.first, all = b.images * rows;
  const bool as_one = plan.pointwise && c.geometry.stride == 1;
  for (int64_t i = 0; i < (as_one ? 1 : all); ++i) {
    const int64_t h = (b.image + i / rows) * H + (b.first + i % rows) * stride;
    take_row(plan, t, h * row, stride * t.dim(3), c.y.dim(2) * (as_one ? all : 1), points);
  }
}

// Only the pixels that are used are packed, in one long row.
Operands take_points(const ConvArgs& c, const Plan& plan, const Piece& b, Memory& memory) {
  take_pixels(c, plan, c.x, b, c.geometry.stride, memory.seen);
  const int64_t all = int64_t(memory.seen.a.size()), group = all * plan.slot;
  Cell* const x = grow(memory.inputs, plan.groups.count * group);
  pack_pixels(plan, memory.seen, c.x.dtype(), x, plan.slot, plan.first_channel, plan.channels);
  return {x, nullptr, true, all, {1, 1, all, 0, 0, plan.slot}, group, 0, 0};
}

// Adds one row of a window, zero outside the image. In pairs each column brings along the one that the
// next output sees.
void take_window(const ConvArgs& c, const Plan& plan, int64_t n, int64_t h, const Rectangle& r,
                 Points& points) {
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3);
  const auto pixel = [&](int64_t w) {
    const bool inside = h >= 0 && h < H && w >= 0 && w < W && w < r.right;
    return inside ? at(c.x, ((n * H + h) * W + w) * C) : plan.zeros.raw();
  };
  for (int64_t w = r.left; w < r.right; ++w) {
    points.a.push_back(pixel(w));
    points.b.push_back(pixel(w + c.geometry.stride));
  }
}

Operands take_windows(const ConvArgs& c, const Plan& plan, const Piece& b, Memory& memory) {
  const auto& g = c.geometry;
  const Rectangle r = window_of(c, b.first, b.last);
  for (int64_t n = b.image; n < b.image + b.images; ++n)
    for (int64_t h = r.top; h < r.bottom; ++h) take_window(c, plan, n, h, r, memory.seen);
  const int64_t row = r.width() * plan.slot, image = r.height() * row, group = b.images * image;
  Cell* const x = grow(memory.inputs, b.images * r.height() * r.width() * plan.pixel());
  Cell* to = x;
  if (plan.merged)
    visit_float(c.x.dtype(), [&](auto zero) {
      for (const void* pixel : memory.seen.a)
        fill_cells(to, static_cast<const decltype(zero)*>(pixel), plan.slot), to += plan.slot;
    });
  else
    pack_pixels(plan, memory.seen, c.x.dtype(), x, plan.slot, plan.first_channel, plan.channels);
  return {x,
          nullptr,
          !plan.merged,
          r.width(),
          {b.images, b.last - b.first, plan.cells(c.y.dim(2)), image, g.stride * row,
           plan.kind.elements * g.stride * plan.slot},
          group,
          0,
          0};
}

// Cells of one f32 are what images of f32 are made of, so windows of one pixel and full panels need no copy.
// Of pixels with more channels the panels would lie so far apart that they share places in a cache; with AVX2
// alone copies win on the whole.
bool in_place(const ConvArgs& c, const Plan& plan) {
  constexpr int64_t kMost = 512;
  if (kernels().width <= 8 || std::max(c.x.dim(3), c.y.dim(3)) > kMost) return false;
  return plan.pointwise && c.x.dtype() == kF32 && c.y.dim(3) % plan.tiles.lanes == 0;
}
Operands images(const ConvArgs& c, const Plan& plan, const Piece& b) {
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3), P = c.y.dim(1), Q = c.y.dim(2),
                O = c.y.dim(3), stride = c.geometry.stride;
  return {static_cast<const Cell*>(at(c.x, (b.image * H + b.first * stride) * W * C)),
          static_cast<const Cell*>(at(c.y, (b.image * P + b.first) * Q * O)),
          false,
          0,
          {b.images, b.last - b.first, Q, H * W * C, stride * W * C, stride * C},
          0,
          plan.tiles.lanes,
          O};
}

Operands pack(const ConvArgs& c, const Plan& plan, const Piece& b, Memory& memory) {
  const int64_t lanes = plan.tiles.lanes;
  Points& points = memory.seen;
  points.clear();
  take_pixels(c, plan, c.y, b, 1, points);
  const int64_t all = int64_t(points.a.size());
  Cell* const dy = grow(memory.outputs, plan.panels * all * lanes);
  pack_pixels(plan, points, c.y.dtype(), dy, lanes, plan.first_output, c.y.dim(3));
  points.clear();
  Operands from = plan.pointwise ? take_points(c, plan, b, memory) : take_windows(c, plan, b, memory);
  from.dy = dy, from.panel = all * lanes, from.dy_step = lanes;
  return from;
}

// Adds the products of a block's pixels to `sums`.
void add_block(const ConvArgs& c, const Plan& plan, const Piece& b, Ahead& ahead, float* sums, bool add) {
  thread_local Memory memory;
  const Operands from = in_place(c, plan) ? images(c, plan, b) : pack(c, plan, b, memory);
  const int64_t S = c.w.dim(2), pixels = from.pixels.planes * from.pixels.rows * from.pixels.columns;
  for (int64_t j = 0; j < plan.panels; ++j)
    for (int64_t t = 0; t < plan.taps; ++t) {
      const int64_t tr = plan.merged ? t : t / S, ts = plan.merged ? 0 : t % S;
      const Cell* const x = from.x + (tr * from.width + ts) * c.geometry.dilation * plan.slot;
      for (int64_t i = 0; i < plan.groups.count; ++i)
        plan.tiles.outer[plan.groups.size(i) - 1](
            {.x = x + (from.packed ? i * from.group : plan.groups.first(i)),
             .y = from.dy + j * from.panel,
             .at = from.pixels,
             .y_step = from.dy_step,
             .sums = sums + plan.place(i, j, t),
             .add = add,
             .fetch = ahead.take(pixels)});
    }
}

void fetch(const ConvArgs& c, const Piece& b, Ahead& ahead) {
  const int64_t end = b.image + b.images;
  ahead.add_rows(c.y, b.image, end, b.first, b.last);
  fetch_seen(c, b.image, end, b.first, b.last, ahead);
}

// The rows of an image, or the images, of a block whose operands stay in the second-level cache; but at least
// so many pixels that adding to the sums costs little beside them.
struct Share {
  int64_t rows, images;
};
Share share_of(const ConvArgs& c, const Plan& plan) {
  const int64_t N = c.y.dim(0), P = c.y.dim(1), Q = c.y.dim(2),
                seen = std::min<int64_t>(c.geometry.stride, c.w.dim(1));
  const int64_t threads = PrivateSums::threads_for(N),
                columns = plan.pointwise ? plan.cells(Q) : Q * seen * seen;
  const int64_t a_row = plan.panels * plan.tiles.lanes * plan.cells(Q) + plan.pixel() * columns;
  const int64_t fewest = N < omp_get_max_threads() ? 1 : (kFewest + Q - 1) / Q;  // threads need blocks
  const int64_t rows = std::max(plan.block_cells / a_row, fewest);
  if (rows < P) return {Blocks::even_share(P, rows), 1};
  return {P, std::clamp<int64_t>(kFewest / (P * Q), 1, N / threads)};
}

// dw [O][tap][channel] <- beta dw + the threads' sums
void gather(const ConvArgs& c, const Plan& plan, const PrivateSums& sums) {
  const int64_t O = c.w.dim(0), K = plan.taps * plan.channels, lanes = plan.tiles.lanes;
  const Groups& groups = plan.groups;
#pragma omp parallel for schedule(static) if (c.w.size() > 1 << 14)
  for (int64_t j = 0; j < plan.panels; ++j)
    for (int64_t i = 0; i < plan.taps * groups.count; ++i) {
      constexpr int64_t kWide = 16;  // at least kMostRows
      float tile[kMostRows * kMostLanes], turned[kMostLanes * kWide];
      const int64_t group = i % groups.count, rows = groups.size(group);
      sums.total(plan.place(group, j, i / groups.count), rows * lanes, tile);
      kernels().transpose(reinterpret_cast<Cell*>(turned), kWide, reinterpret_cast<const Cell*>(tile), rows,
                          lanes);
      float* dw = c.w.data<float>() + j * lanes * K + i / groups.count * plan.channels + groups.first(group);
      for (int64_t o = 0; o < std::min(lanes, O - j * lanes); ++o)
        for (int64_t l = 0; l < rows; ++l) settle(dw[o * K + l], turned[o * kWide + l], c.beta);
    }
}

}  // namespace

void direct_backward_weights(const ConvArgs& c) {
  if (amx_fits_weights(c)) return amx_backward_weights(c);
  const Plan plan = plan_of(c);
  const int64_t N = c.y.dim(0), P = c.y.dim(1);
  const Share share = share_of(c, plan);
  const int64_t cuts = (P + share.rows - 1) / share.rows;
  const auto piece = [&](int64_t i, int64_t count) {
    const int64_t first = i % cuts * share.rows;
    return Piece{i / cuts, count, first, std::min(first + share.rows, P)};
  };
  const auto make = [&](int64_t i, int64_t count, int64_t end, float* sums, bool add) {
    const int64_t next = i + count;
    Ahead ahead;
    if (next < end) fetch(c, piece(next, std::min(count, end - next)), ahead);
    add_block(c, plan, piece(i, count), ahead, sums, add);
  };
  gather(c, plan, PrivateSums(plan.size(), N * cuts, share.images, make));
}

}  // namespace skein::cpu
