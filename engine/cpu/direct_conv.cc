// Forward and data-gradient convolutions: every sum is a product of an image window with packed weights.
#include "engine/cpu/direct_conv.h"
#include "engine/cpu/cells.h"
#include "engine/cpu/channel_sums.h"
#include "engine/cpu/window.h"
#include "engine/past_caches.h"

namespace skein::cpu {

namespace {

constexpr int64_t kWeightsInCache = 5 << 10;  // cells: 20 of 32 kB
constexpr int64_t kDepthAtOnce = 256;         // cells of 1x1 weights that meet all pixels before the next do

// Pixels that are multiplied together: the first, how many, and how many of these are the first half, where
// the pixels of a half must be at equal steps in memory.
struct Group {
  int64_t first, rows, half;
};

// One product: out[i] <- act(sum over taps and depth of in[i] * weights + bias) + beta out[i].
struct Product {
  std::vector<const Cell*> in;
  std::vector<void*> out;  // null: the sums are not wanted
  std::vector<Group> groups;
  std::vector<int64_t> taps;
  int64_t depth, outputs;
  const TileKernels* tiles;
  void (*finish)(const TileFinish&);
  const Cell* weights;  // [panel][tap][depth][lanes]
  const float* bias;    // may be null
  float beta;
  bool relu;
  bool plain;        // The tiles themselves write the results, where a panel is full,
  bool past_caches;  // and do so past the caches.
  float* sums;       // of the results and, after those, of their squares; may be null
  void clear() { in.clear(), out.clear(), groups.clear(), taps.clear(); }
};

// Cuts the pixels into groups of what the tiles take at once. Where they must be at equal steps, runs of such
// are cut into halves, any two of which make a group.
void cut(Product& p) {
  const int64_t n = int64_t(p.in.size()), together = p.tiles->at_equal_steps;
  if (!together) {
    const Groups groups(n, p.tiles->rows);
    for (int64_t i = 0; i < groups.count; ++i) p.groups.push_back({groups.first(i), groups.size(i), 0});
    return;
  }
  bool open = false;  // the last group has its first half only
  for (int64_t first = 0, last; first < n; first = last) {
    const auto step = [&](int64_t i) { return p.in[size_t(i)] - p.in[size_t(i - 1)]; };
    last = first + 1;
    while (last < n && step(last) == step(first + 1)) ++last;
    for (int64_t i = first; i < last; i += together, open = !open) {
      const int64_t rows = std::min(together, last - i);
      if (open)
        p.groups.back().rows += rows;
      else
        p.groups.push_back({i, rows, rows});
    }
  }
}

// The results of a group of pixels in a panel, which the processor may fetch while it multiplies.
void fetch_results(const Product& p, int64_t first, int64_t rows, int64_t j) {
  const int64_t one = size_of(p.tiles->type), from = j * p.tiles->lanes * one, bytes = p.tiles->lanes * one;
  for (int64_t i = first; i < first + rows; ++i)
    for (int64_t b = 0; b < bytes; b += 64)
      __builtin_prefetch(static_cast<const char*>(p.out[size_t(i)]) + from + b, 1);
}

// Sums of one group of pixels by one panel of outputs; over `depth` of the products from `from` on.
void multiply(const Product& p, size_t g, int64_t j, int64_t from, int64_t depth, float* sums) {
  const int64_t taps = int64_t(p.taps.size()), first = p.groups[g].first, rows = p.groups[g].rows,
                lanes = p.tiles->lanes, at = taps == 1 ? p.taps[0] + from : 0, width = p.outputs - j * lanes;
  const bool last = from + depth >= p.depth, direct = last && p.plain && width >= lanes;
  const bool past_caches = direct && p.past_caches;
  if (last && !past_caches) fetch_results(p, first, rows, j);
  TileResults out;
  if (direct) out = {p.out.data() + first, j * lanes, p.beta, past_caches};
  if (direct && p.sums) out.sums = p.sums + j * lanes, out.squares = out.sums + p.outputs;
  const bool more = g + 1 < p.groups.size();  // the next group is as large or one smaller
  p.tiles->product(
      {.rows = rows,
       .in = p.in.data() + first,
       .tap = taps == 1 ? &at : p.taps.data(),
       .taps = taps,
       .depth = depth,
       .weights = p.weights + (j * taps * p.depth + from) * lanes,
       .sums = sums,
       .sums_step = lanes,
       .add = from > 0,
       .out = out,
       .next = more ? p.in.data() + std::min(first + rows, int64_t(p.in.size()) - rows) : nullptr,
       .half = p.groups[g].half});
  if (!last || direct) return;
  p.finish({.out = p.out.data() + first,
            .sums = sums,
            .bias = p.bias ? p.bias + j * lanes : nullptr,
            .rows = rows,
            .sums_step = lanes,
            .from = j * lanes,
            .width = std::min<int64_t>(lanes, width),
            .beta = p.beta,
            .relu = p.relu});
}

void multiply(const Product& p) {
  const int64_t lanes = p.tiles->lanes, taps = int64_t(p.taps.size()), all = panels(p.outputs, lanes);
  thread_local std::vector<float> memory;
  if (taps * p.depth * all * lanes <= kWeightsInCache) {  // all weights stay in the first-level cache
    float* sums = grow(memory, p.tiles->rows * lanes);
    for (size_t g = 0; g < p.groups.size(); ++g)
      for (int64_t j = 0; j < all; ++j) multiply(p, g, j, 0, p.depth, sums);
    return;
  }
  const int64_t depth = taps == 1 && p.depth > kDepthAtOnce * 3 / 2 ? kDepthAtOnce : p.depth;
  float* sums = grow(memory, int64_t(p.in.size()) * lanes);
  for (int64_t j = 0; j < all; ++j)
    for (int64_t from = 0; from < p.depth; from += depth)
      for (size_t g = 0; g < p.groups.size(); ++g)
        multiply(p, g, j, from, std::min(depth, p.depth - from), sums + p.groups[g].first * lanes);
}

void run(Product& p) {
  cut(p);
  multiply(p);
  if (p.tiles->complete) p.tiles->complete();
}

// Between two rows of a window, the pixels at the same step that continue the first up to the next one: where
// tiles want equal steps, their sums cost less than a group that the row does not fill.
void bridge(Product& p, int64_t row, int64_t step, int64_t pixels) {
  const int64_t more = row / step - pixels;
  if (!p.tiles->at_equal_steps || row % step || more < 0 || more > std::max<int64_t>(2, pixels / 4)) return;
  const Cell* last = p.in.back();
  for (int64_t i = 1; i <= more; ++i) p.in.push_back(last + i * step), p.out.push_back(nullptr);
}

// Few channels make short inner loops: then a window's row of S x C floats is one run.
bool merged(const ConvArgs& c) { return c.x.dim(3) < 8 && c.geometry.dilation == 1; }

// [O][K] -> [panel][K][lanes], K in cells.
Cells pack_forward(const ConvArgs& c, const CellKind& kind, int64_t lanes) {
  const int64_t O = c.w.dim(0), K = c.w.size() / O / kind.elements;
  const Tensor w = kind.elements == 2 ? as_bf16(c.w) : c.w;
  const Cells packed(panels(O, lanes) * K * lanes);
#pragma omp parallel for schedule(static) if (O * K > 1 << 14)
  for (int64_t j = 0; j < panels(O, lanes); ++j)
    kernels().transpose(packed.data() + j * K * lanes, lanes,
                        static_cast<const Cell*>(w.raw()) + j * lanes * K, std::min(lanes, O - j * lanes), K);
  return packed;
}

void forward_block(const ConvArgs& c, const CellKind& kind, const Cells& packed, const Block& b, Product& p) {
  const auto& g = c.geometry;
  const int64_t C = c.x.dim(3) / kind.elements, R = c.w.dim(1), S = c.w.dim(2);
  const int64_t P = c.y.dim(1), Q = c.y.dim(2), O = c.y.dim(3);
  thread_local std::vector<Cell> memory;
  const Windows x(kind, c.x, b.image, b.last_image, window_of(c, b.first, b.last), memory);
  p.clear();
  for (int64_t n = b.image; n < b.last_image; ++n)
    for (int64_t i = b.first; i < b.last; ++i) {
      for (int64_t q = 0; q < Q; ++q) {
        p.in.push_back(x.of(n) + (i - b.first) * g.stride * x.row() + q * g.stride * x.pixel());
        p.out.push_back(at(c.y, ((n * P + i) * Q + q) * O));
      }
      if (i + 1 < b.last) bridge(p, g.stride * x.row(), g.stride * x.pixel(), Q);
    }
  for (int64_t i = 0; i < R; ++i)
    for (int64_t s = 0; s < (merged(c) ? 1 : S); ++s)
      p.taps.push_back(i * g.dilation * x.row() + s * g.dilation * x.pixel());
  p.depth = merged(c) ? S * C : C, p.outputs = O, p.weights = packed.data();
  p.bias = c.bias ? c.bias.data<float>() : nullptr, p.beta = 0, p.relu = c.relu;
  run(p);
}

// One row of a panel of data weights: outputs o and, in pairs, o + 1 at tap (r, s), `width` channels
// from c on.
void put_row(Cell* to, const Tensor& w, int64_t o, int64_t tap, int64_t c, int64_t width) {
  const int64_t C = w.dim(3), one = w.dim(1) * w.dim(2) * C, from = o * one + tap * C + c;
  if (w.dtype() == kBF16)
    kernels().pair(to, w.data<bf16>() + from, w.data<bf16>() + from + one, width);
  else
    fill_cells(to, w.data<float>() + from, width);
}

// Of all panels.
int64_t cells_of_a_tap(const ConvArgs& c, const CellKind& kind, int64_t lanes) {
  return panels(c.w.dim(3), lanes) * c.w.dim(0) / kind.elements * lanes;
}

// [O][R][S][C] -> for each class [panel of C][tap][O][lanes], O in cells.
Cells pack_data(const ConvArgs& c, const CellKind& kind, const std::vector<Class>& classes, int64_t lanes) {
  const int64_t O = c.w.dim(0), S = c.w.dim(2), C = c.w.dim(3);
  const Tensor weights = kind.elements == 2 ? as_bf16(c.w) : c.w;
  const Cells packed(panels(C, lanes) * lanes * (c.w.size() / C / kind.elements));
#pragma omp parallel for schedule(static) if (c.w.size() > 1 << 14)
  for (int64_t j = 0; j < panels(C, lanes); ++j)
    for (const Class& k : classes) {
      const int64_t width = std::min(lanes, C - j * lanes);
      Cell* to = packed.data() + k.before * cells_of_a_tap(c, kind, lanes) +
                 j * int64_t(k.taps.size()) * O / kind.elements * lanes;
      for (auto [r, s] : k.taps)
        for (int64_t o = 0; o < O; o += kind.elements, to += lanes) {
          put_row(to, weights, o, r * S + s, j * lanes, width);
          std::fill(to + width, to + lanes, 0);
        }
    }
  return packed;
}

void data_block(const ConvArgs& c, const CellKind& kind, const std::vector<Class>& classes,
                const Cells& packed, const Block& b, Product& p) {
  const auto& g = c.geometry;
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3);
  const int64_t O = c.y.dim(3) / kind.elements, s = g.stride;
  const Rectangle r = seen_by(c, b);
  thread_local std::vector<Cell> memory;
  const Windows y(kind, c.y, b.image, b.last_image, r, memory);
  for (const Class& k : classes) {
    p.clear();
    const EveryStride rows(b.first, b.last, k.h, g), columns(0, W, k.w, g);
    for (int64_t n = b.image; n < b.last_image; ++n)
      for (int64_t i = 0; i < rows.count; ++i) {
        const int64_t h = rows.first + i * s;
        for (int64_t w = columns.first; w < W; w += s) {
          p.in.push_back(y.of(n) + ((h + g.padding) / s - r.top) * y.row() +
                         ((w + g.padding) / s - r.left) * y.pixel());
          p.out.push_back(at(c.x, ((n * H + h) * W + w) * C));
        }
        if (i + 1 < rows.count && columns.count) bridge(p, y.row(), y.pixel(), columns.count);
      }
    for (auto [i, j] : k.taps)
      p.taps.push_back(-(i * g.dilation / s) * y.row() - (j * g.dilation / s) * y.pixel());
    p.depth = O, p.outputs = C,
    p.weights = packed.data() + k.before * cells_of_a_tap(c, kind, p.tiles->lanes);
    p.bias = nullptr, p.beta = c.beta, p.relu = false;
    run(p);
  }
}

// Whether tiles write whole lines of the caches.
bool whole_lines(const Tensor& out, const TileKernels& tiles) {
  const int64_t one = size_of(out.dtype());
  return out.dim(3) * one % kLineBytes == 0 && tiles.lanes * one % kLineBytes == 0;
}

Product product_of(const ConvArgs& c, const Tensor& out, const TileKernels& tiles) {
  Product p;
  p.past_caches = past_caches(out) && whole_lines(out, tiles) && (&out != &c.x || c.beta == 0);
  p.tiles = &tiles, p.finish = kernels().finish[element(c.y.dtype())];
  p.plain = !c.bias && !c.relu && tiles.type == c.y.dtype();
  p.sums = nullptr;
  return p;
}

CellKind forward_kind(const ConvArgs& c) {
  return merged(c) ? CellKind::of_floats() : CellKind::of_products(c);
}

}  // namespace

bool direct_gives_sums(const ConvArgs& c) {
  const TileKernels& tiles = forward_kind(c).tiles(c.y.dim(3));
  return c.y.dim(3) % tiles.lanes == 0 && tiles.type == c.y.dtype() && !tiles.at_equal_steps;
}

void direct_forward(const ConvArgs& c) {
  const CellKind kind = forward_kind(c);
  const TileKernels& tiles = kind.tiles(c.y.dim(3));
  const Cells packed = pack_forward(c, kind, tiles.lanes);
  const int64_t seen = std::min<int64_t>(c.geometry.stride, c.w.dim(1));
  const Blocks blocks(c.y.dim(0), c.y.dim(1), c.y.dim(2), c.x.dim(3) / kind.elements * seen * seen, 1);
  BlockSums sums(c.sums, blocks.count());
#pragma omp parallel
  {
    Product p = product_of(c, c.y, tiles);
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < blocks.count(); ++i) {
      p.sums = sums.of(i);
      forward_block(c, kind, packed, Block(blocks, i), p);
    }
    fence_streams<V8>();
    if (tiles.at_equal_steps) amx_kernels()->release();
  }
  sums.finish();
}

void direct_backward_data(const ConvArgs& c) {
  const CellKind kind = CellKind::of_products(c);
  const TileKernels& tiles = kind.tiles(c.x.dim(3));
  const std::vector<Class> classes = classes_of(c);
  const Cells packed = pack_data(c, kind, classes, tiles.lanes);
  const int64_t s = c.geometry.stride;
  const Blocks blocks(c.x.dim(0), c.x.dim(1), c.x.dim(2),
                      std::max<int64_t>(1, c.y.dim(3) / kind.elements / (s * s)), s);
#pragma omp parallel
  {
    Product p = product_of(c, c.x, tiles);
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < blocks.count(); ++i) data_block(c, kind, classes, packed, Block(blocks, i), p);
    fence_streams<V8>();
    if (tiles.at_equal_steps) amx_kernels()->release();
  }
}

}  // namespace skein::cpu
