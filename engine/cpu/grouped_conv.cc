// Grouped convolutions, forward and data gradient: products of pixels and weights, a vector at a time.
#include "engine/cpu/grouped_conv.h"

#include "engine/cpu/grouping.h"

namespace skein::cpu {

namespace {

// What becomes of sums.
struct Ending {
  const Tensor& out;
  const float* bias;  // may be null
  float beta;
  bool relu;
  // Whether the kernels themselves write results.
  bool plain(const Grouping& g) const {
    return !bias && !relu && beta == 0 && out.dtype() == g.all.type && out.dim(3) % g.lanes == 0;
  }
  // Whether they do so past the caches, which do not hold so much until it is read: whole lines at a time.
  bool past_caches(const Grouping& g) const {
    constexpr int64_t kFrom = 8 << 20, kLine = 64;
    return plain(g) && out.bytes() >= kFrom && g.lanes * size_of(out.dtype()) == kLine &&
           reinterpret_cast<uintptr_t>(out.raw()) % kLine == 0;
  }
};

// The results of an image that see the same taps.
struct Results {
  const Cell* in;           // to the first result's window
  int64_t in_row, in_step;  // cells
  const std::vector<int64_t>& taps;
  const Cell* weights;             // [panel][tap][depth][lanes]
  int64_t out, out_row, out_step;  // elements
  int64_t rows, columns;
};

void finish(const Grouping& g, const Results& r, const Ending& end, int64_t lane, const float* sums) {
  thread_local std::vector<void*> out;
  out.clear();
  for (int64_t i = 0; i < r.rows; ++i)
    for (int64_t q = 0; q < r.columns; ++q)
      out.push_back(at(end.out, r.out + i * r.out_row + q * r.out_step));
  kernels().finish[element(end.out.dtype())]({.out = out.data(),
                                              .sums = sums,
                                              .bias = end.bias ? end.bias + lane : nullptr,
                                              .rows = int64_t(out.size()),
                                              .sums_step = g.lanes,
                                              .from = lane,
                                              .width = std::min(g.lanes, end.out.dim(3) - lane),
                                              .beta = end.beta,
                                              .relu = end.relu});
}

void run(const Grouping& g, const Results& r, const Ending& end) {
  if (r.rows <= 0 || r.columns <= 0) return;
  thread_local std::vector<float> memory;
  const bool plain = end.plain(g), past_caches = end.past_caches(g);
  float* sums = plain ? nullptr : grow(memory, r.rows * r.columns * g.lanes);
  const int64_t taps = int64_t(r.taps.size()), depth = g.channels / g.elements;
  const auto product = g.kernels().product[Groups(r.columns, g.kernels().pixels).size(0) - 1];
  for (int64_t j = 0; j < g.panels; ++j) {
    const int64_t lane = j * g.lanes;
    product({.in = r.in + g.run_of(j) / g.elements,
             .in_row = r.in_row,
             .in_step = r.in_step,
             .tap = r.taps.data(),
             .taps = taps,
             .depth = depth,
             .weights = r.weights + lane * taps * depth,
             .to = plain ? at(end.out, r.out + lane) : sums,
             .results = plain,
             .past_caches = past_caches,
             .to_row = plain ? r.out_row : r.columns * g.lanes,
             .to_step = plain ? r.out_step : g.lanes,
             .rows = r.rows,
             .columns = r.columns});
    if (!plain) finish(g, r, end, lane, sums);
  }
}

// [O][K] -> [panel][K][lanes], K in cells.
Cells pack_forward(const ConvArgs& c, const Grouping& g) {
  const int64_t O = c.w.dim(0), K = c.w.size() / O / g.elements;
  const Tensor w = g.elements == 2 ? as_bf16(c.w) : c.w;
  const Cells packed(g.panels * K * g.lanes);
  for (int64_t j = 0; j < g.panels; ++j)
    kernels().transpose(packed.data() + j * K * g.lanes, g.lanes,
                        static_cast<const Cell*>(w.raw()) + j * g.lanes * K,
                        std::min(g.lanes, O - j * g.lanes), K);
  return packed;
}

void forward_block(const ConvArgs& c, const Grouping& g, const Cells& packed, const Block& b,
                   const Ending& end) {
  thread_local std::vector<Cell> memory;
  const int64_t P = c.y.dim(1), Q = c.y.dim(2), O = c.y.dim(3), stride = c.geometry.stride;
  const Windows x(g.kind, c.x, b.image, b.last_image, window_of(c, b.first, b.last), memory,
                  g.unit(c.x.dim(3) / g.elements));
  std::vector<int64_t> taps;
  for (int64_t i = 0; i < c.w.dim(1); ++i)
    for (int64_t j = 0; j < c.w.dim(2); ++j)
      taps.push_back(c.geometry.dilation * (i * x.row() + j * x.pixel()));
  for (int64_t n = b.image; n < b.last_image; ++n)
    run(g,
        {.in = x.of(n),
         .in_row = stride * x.row(),
         .in_step = stride * x.pixel(),
         .taps = taps,
         .weights = packed.data(),
         .out = (n * P + b.first) * Q * O,
         .out_row = Q * O,
         .out_step = O,
         .rows = b.last - b.first,
         .columns = Q},
        end);
}

// [O][tap][K] -> for each class [panel][tap][K of O][lanes of inputs]
Cells pack_data(const ConvArgs& c, const Grouping& g, const std::vector<Class>& classes) {
  const int64_t O = c.w.dim(0), S = c.w.dim(2), K = g.channels, one = c.w.size() / O;
  const Tensor w = g.elements == 2 ? as_bf16(c.w) : c.w;
  const int64_t together = std::min(K, g.lanes);
  const Cells packed(g.panels * g.lanes * one / g.elements);
  Cell* to = packed.data();
  for (const Class& k : classes)
    for (int64_t j = 0; j < g.panels; ++j)
      for (auto [r, s] : k.taps)
        for (int64_t o = 0; o < K; o += g.elements)
          for (int64_t l = j * g.lanes; l < (j + 1) * g.lanes; l += together, to += together) {
            const int64_t from = (l / K * K + o) * one + (r * S + s) * K + l % K;
            if (l >= O)
              std::fill(to, to + together, 0);
            else if (g.elements == 2)
              pair_cells(to, w.data<bf16>() + from, w.data<bf16>() + from + one, together);
            else
              fill_cells(to, w.data<float>() + from, together);
          }
  return packed;
}

void data_block(const ConvArgs& c, const Grouping& g, const std::vector<Class>& classes, const Cells& packed,
                const Block& b, const Ending& end) {
  thread_local std::vector<Cell> memory;
  const ConvGeometry& at = c.geometry;
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3), stride = at.stride, pad = at.padding;
  const Rectangle r = seen_by(c, b);
  const Windows y(g.kind, c.y, b.image, b.last_image, r, memory, g.unit(c.y.dim(3) / g.elements));
  for (const Class& k : classes) {
    const EveryStride h(b.first, b.last, k.h, at), w(0, W, k.w, at);
    const int64_t from =
        ((h.first + pad) / stride - r.top) * y.row() + ((w.first + pad) / stride - r.left) * y.pixel();
    std::vector<int64_t> taps;
    for (auto [i, j] : k.taps)
      taps.push_back(-(i * at.dilation / stride) * y.row() - (j * at.dilation / stride) * y.pixel());
    for (int64_t n = b.image; n < b.last_image; ++n)
      run(g,
          {.in = y.of(n) + from,
           .in_row = y.row(),
           .in_step = y.pixel(),
           .taps = taps,
           .weights = packed.data() + k.before * g.panels * g.lanes * g.channels / g.elements,
           .out = ((n * H + h.first) * W + w.first) * C,
           .out_row = stride * W * C,
           .out_step = stride * C,
           .rows = h.count,
           .columns = w.count},
          end);
  }
}

}  // namespace

bool grouped_fits(const ConvArgs& c) {
  const int64_t K = c.w.dim(3), lanes = kernels().width;
  if (c.geometry.groups == 1 || K * c.geometry.groups != c.w.dim(0)) return false;
  return K < lanes ? K == 2 || K == 4 || K == 8 : K % lanes == 0;
}

void grouped_forward(const ConvArgs& c) {
  const Grouping g = Grouping::of(c);
  const Cells packed = pack_forward(c, g);
  const Ending end{c.y, c.bias ? c.bias.data<float>() : nullptr, 0, c.relu};
  const int64_t stride = std::min<int64_t>(c.geometry.stride, c.w.dim(1));
  const Blocks blocks(c.y.dim(0), c.y.dim(1), c.y.dim(2), c.x.dim(3) / g.elements * stride * stride, 1);
#pragma omp parallel
  {
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < blocks.count(); ++i) forward_block(c, g, packed, Block(blocks, i), end);
    fence_streams<V8>();
  }
}

void grouped_backward_data(const ConvArgs& c) {
  const Grouping g = Grouping::of(c);
  const std::vector<Class> classes = classes_of(c);
  const Cells packed = pack_data(c, g, classes);
  const Ending end{c.x, nullptr, c.beta, false};
  const int64_t stride = c.geometry.stride;
  const Blocks blocks(c.x.dim(0), c.x.dim(1), c.x.dim(2),
                      std::max<int64_t>(1, c.y.dim(3) / g.elements / (stride * stride)), stride);
#pragma omp parallel
  {
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < blocks.count(); ++i) data_block(c, g, classes, packed, Block(blocks, i), end);
    fence_streams<V8>();
  }
}

}  // namespace skein::cpu
