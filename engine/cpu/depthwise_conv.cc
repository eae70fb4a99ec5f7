// Depthwise convolutions, forward and data gradient: products of pixels with weights, channel by channel.
#include "engine/cpu/depthwise_conv.h"

#include "engine/cpu/window.h"

namespace skein::cpu {

namespace {

int64_t lanes_of(const ConvArgs& c) { return up_to_multiple(c.x.dim(3), kernels().width); }

// What becomes of sums.
struct End {
  const Tensor& out;
  const float* bias;  // may be null
  float beta;
  bool relu;
  // Whether the sums are the results.
  bool plain() const {
    return !bias && !relu && beta == 0 && out.dtype() == kF32 && out.dim(3) % kernels().width == 0;
  }
};

// Rows of results: of an image, from element `out` on.
struct Rows {
  const float* in;
  int64_t in_row, in_step;         // floats
  int64_t out, out_row, out_step;  // elements
  int64_t rows, columns;
};

struct Taps {
  std::vector<int64_t> at;
  const float* weights;  // [tap][lanes]
};

void put(const End& end, const Rows& rows, const float* sums, int64_t lanes) {
  std::vector<void*> out;
  for (int64_t r = 0; r < rows.rows; ++r)
    for (int64_t q = 0; q < rows.columns; ++q)
      out.push_back(at(end.out, rows.out + r * rows.out_row + q * rows.out_step));
  kernels().finish[element(end.out.dtype())]({.out = out.data(),
                                              .sums = sums,
                                              .bias = end.bias,
                                              .rows = int64_t(out.size()),
                                              .sums_step = lanes,
                                              .from = 0,
                                              .width = end.out.dim(3),
                                              .beta = end.beta,
                                              .relu = end.relu});
}

void run(const Rows& rows, const Taps& taps, int64_t lanes, const End& end) {
  if (rows.rows == 0 || rows.columns == 0) return;
  thread_local std::vector<float> memory;
  const bool plain = end.plain();
  float* sums = plain ? end.out.data<float>() + rows.out : grow(memory, rows.rows * rows.columns * lanes);
  const Groups groups(rows.columns, kMostPixels);
  kernels().depthwise.product[groups.size(0) - 1]({.in = rows.in,
                                                   .in_row = rows.in_row,
                                                   .in_step = rows.in_step,
                                                   .tap = taps.at.data(),
                                                   .taps = int64_t(taps.at.size()),
                                                   .lanes = lanes,
                                                   .weights = taps.weights,
                                                   .sums = sums,
                                                   .sums_row = plain ? rows.out_row : rows.columns * lanes,
                                                   .sums_step = plain ? rows.out_step : lanes,
                                                   .rows = rows.rows,
                                                   .columns = rows.columns});
  if (!plain) put(end, rows, sums, lanes);
}

// [C][tap] -> for each class [tap][lanes]
Tensor pack(const ConvArgs& c, const std::vector<Class>& classes) {
  const int64_t S = c.w.dim(2), all = c.w.dim(1) * S, lanes = lanes_of(c);
  const Tensor packed = Tensor::zeros({all * lanes});
  float* to = packed.data<float>();
  for (const Class& k : classes)
    for (auto [i, j] : k.taps) {
      for (int64_t l = 0; l < c.w.dim(0); ++l) to[l] = c.w.data<float>()[l * all + i * S + j];
      to += lanes;
    }
  return packed;
}

// All taps, as if pixels were not told apart.
std::vector<Class> one_class(const ConvArgs& c) {
  Class all{0, 0, 0, {}};
  for (int64_t i = 0; i < c.w.dim(1); ++i)
    for (int64_t j = 0; j < c.w.dim(2); ++j) all.taps.push_back({i, j});
  return {all};
}

void forward_block(const ConvArgs& c, const Class& all, const Tensor& packed, const Block& b,
                   const End& end) {
  thread_local std::vector<Cell> memory;
  const auto& g = c.geometry;
  const int64_t P = c.y.dim(1), Q = c.y.dim(2), C = c.y.dim(3), lanes = lanes_of(c);
  const Windows x(CellKind::of_floats(), c.x, b.image, b.last_image, window_of(c, b.first, b.last), memory,
                  kernels().width);
  Taps taps{{}, packed.data<float>()};
  for (auto [i, j] : all.taps) taps.at.push_back(i * g.dilation * x.row() + j * g.dilation * x.pixel());
  for (int64_t n = b.image; n < b.last_image; ++n)
    run({.in = reinterpret_cast<const float*>(x.of(n)),
         .in_row = g.stride * x.row(),
         .in_step = g.stride * x.pixel(),
         .out = (n * P + b.first) * Q * C,
         .out_row = Q * C,
         .out_step = C,
         .rows = b.last - b.first,
         .columns = Q},
        taps, lanes, end);
}

void data_block(const ConvArgs& c, const std::vector<Class>& classes, const Tensor& packed, const Block& b,
                const End& end) {
  thread_local std::vector<Cell> memory;
  const auto& g = c.geometry;
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3), lanes = lanes_of(c);
  const Rectangle r = seen_by(c, b);
  const Windows y(CellKind::of_floats(), c.y, b.image, b.last_image, r, memory, kernels().width);
  for (const Class& k : classes) {
    Taps taps{{}, packed.data<float>() + k.before * lanes};
    for (auto [i, j] : k.taps)
      taps.at.push_back(-(i * g.dilation / g.stride) * y.row() - (j * g.dilation / g.stride) * y.pixel());
    const EveryStride h(b.first, b.last, k.h, g), w(0, W, k.w, g);
    const int64_t from = ((h.first + g.padding) / g.stride - r.top) * y.row() +
                         ((w.first + g.padding) / g.stride - r.left) * y.pixel();
    for (int64_t n = b.image; n < b.last_image; ++n)
      run({.in = reinterpret_cast<const float*>(y.of(n)) + from,
           .in_row = y.row(),
           .in_step = y.pixel(),
           .out = ((n * H + h.first) * W + w.first) * C,
           .out_row = g.stride * W * C,
           .out_step = g.stride * C,
           .rows = h.count,
           .columns = w.count},
          taps, lanes, end);
  }
}

}  // namespace

bool is_depthwise(const ConvArgs& c) {
  return c.geometry.groups > 1 && c.w.dim(3) == 1 && c.w.dim(0) == c.geometry.groups;
}

void depthwise_forward(const ConvArgs& c) {
  const std::vector<Class> all = one_class(c);
  const Tensor packed = pack(c, all);
  const End end{c.y, c.bias ? c.bias.data<float>() : nullptr, 0, c.relu};
  const int64_t stride = std::min<int64_t>(c.geometry.stride, c.w.dim(1));
  const Blocks blocks(c.y.dim(0), c.y.dim(1), c.y.dim(2), lanes_of(c) * stride * stride, 1);
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < blocks.count(); ++i) forward_block(c, all[0], packed, Block(blocks, i), end);
}

void depthwise_backward_data(const ConvArgs& c) {
  const std::vector<Class> classes = classes_of(c);
  const Tensor packed = pack(c, classes);
  const End end{c.x, nullptr, c.beta, false};
  const int64_t stride = c.geometry.stride;
  const Blocks blocks(c.x.dim(0), c.x.dim(1), c.x.dim(2),
                      std::max<int64_t>(1, lanes_of(c) / (stride * stride)), stride);
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < blocks.count(); ++i) data_block(c, classes, packed, Block(blocks, i), end);
}

}  // namespace skein::cpu
