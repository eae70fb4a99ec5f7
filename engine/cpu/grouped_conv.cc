// Grouped convolutions, forward and data gradient: products of pixels and weights, a vector at a time.
#include "engine/cpu/grouped_conv.h"

#include <omp.h>

#include "engine/cpu/ahead.h"
#include "engine/cpu/grouping.h"
#include "engine/past_caches.h"

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
  // Whether they do so past the caches, so many panels at a time: a line is one of them or two.
  bool streams(const Grouping& g, int64_t together) const {
    const int64_t element = size_of(out.dtype()), panel = g.lanes * element;
    const bool whole =
        out.dim(3) * element % kLineBytes == 0 && (panel == kLineBytes || 2 * panel == kLineBytes);
    return plain(g) && whole && together * panel % kLineBytes == 0 && past_caches(out);
  }
};

// Results along one dimension: the i-th reads position `first` + i `step` + each of `taps`, in rising order,
// as far as that is from 0 to `limit`.
struct Axis {
  int64_t count, first, step;
  std::vector<int64_t> taps;
  int64_t limit;

  // Of a convolution's results from `from` to `to` along dimension 1 or 2.
  static Axis of_windows(const ConvArgs& c, int dim, int64_t from, int64_t to) {
    const ConvGeometry& g = c.geometry;
    Axis a{to - from, from * g.stride - g.padding, g.stride, {}, c.x.dim(dim)};
    for (int64_t i = 0; i < c.w.dim(dim); ++i) a.taps.push_back(i * g.dilation);
    return a;
  }
  // Results that see the taps [from, to) alone.
  struct Range {
    int64_t first, count, from, to;
  };
  int64_t at(int64_t i) const { return first + i * step; }
  std::vector<Range> ranges() const {
    const auto below = [&](int64_t position) {
      return std::lower_bound(taps.begin(), taps.end(), position) - taps.begin();
    };
    std::vector<Range> all;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t from = below(-at(i)), to = below(limit - at(i));
      if (all.empty() || all.back().from != from || all.back().to != to) all.push_back({i, 0, from, to});
      ++all.back().count;
    }
    return all;
  }
};

// What of a rectangle is inside the images.
Rectangle inside(const Rectangle& r, const Tensor& images) {
  const int64_t top = std::clamp<int64_t>(r.top, 0, images.dim(1));
  return {top, std::clamp(r.bottom, top, images.dim(1)), 0, images.dim(2)};
}

// Whether images are read where they are, every `step`-th pixel, a few at a time: those of the kernels' own
// type, unless these are a multiple of two kilobytes apart, or of four where others lie between them.
bool in_place(const Tensor& images, const Grouping& g, int64_t step) {
  const int64_t cells = images.dim(3) / g.elements, crowded = step == 1 ? 512 : 1024;
  return images.dtype() == g.all.type && cells * step % crowded != 0;
}
// What their pixels are rounded up to.
int64_t unit_of(const Tensor& images, const Grouping& g, int64_t step) {
  return in_place(images, g, step) ? g.lanes : g.unit(images.dim(3) / g.elements);
}

// Results of an image.
struct Results {
  const Cell* in;      // to position (0, 0), which need not be there
  int64_t row, pixel;  // cells
  Axis h, w;
  const Cell* weights;             // [panel][tap][depth][lanes]
  int64_t out, out_row, out_step;  // elements
};

// Those of them that see the same taps, row by row or column by column.
struct Region {
  const Cell* in;
  int64_t in_row, in_step, out, out_row, out_step, rows, columns;
  bool apart;                          // whether other pixels lie between those that a tap sees
  std::vector<int64_t> taps, weights;  // cells

  Region(const Grouping& g, const Results& all, const Axis::Range& h, const Axis::Range& w)
      : in(all.in + all.h.at(h.first) * all.row + all.w.at(w.first) * all.pixel),
        in_row(all.h.step * all.row),
        in_step(all.w.step * all.pixel),
        out(all.out + h.first * all.out_row + w.first * all.out_step),
        out_row(all.out_row),
        out_step(all.out_step),
        rows(h.count),
        columns(w.count),
        apart(all.w.step > 1) {
    for (int64_t i = h.from; i < h.to; ++i)
      for (int64_t j = w.from; j < w.to; ++j) {
        taps.push_back(all.h.taps[size_t(i)] * all.row + all.w.taps[size_t(j)] * all.pixel);
        weights.push_back((i * int64_t(all.w.taps.size()) + j) * g.channels / g.elements * g.lanes);
      }
    if (columns < std::min<int64_t>(rows, g.kernels().pixels))  // more pixels at a time
      std::swap(in_row, in_step), std::swap(out_row, out_step), std::swap(rows, columns);
  }
  // How many taps each are side by side: 3, 2 or 1.
  int64_t taps_together(const Grouping& g) const {
    const int64_t step = g.channels / g.elements * g.lanes, count = int64_t(taps.size());
    const auto are_side_by_side = [&](int64_t together) {
      for (int64_t t = 0; t < count; ++t)
        if (t % together && (taps[t] != taps[t - 1] + in_step || weights[t] != weights[t - 1] + step))
          return false;
      return count % together == 0;
    };
    return are_side_by_side(3) ? 3 : are_side_by_side(2) ? 2 : 1;
  }
};

// Of `lanes` sums for each result, from the lane-th on.
void finish(const Region& r, const Ending& end, int64_t lane, int64_t lanes, const float* sums) {
  thread_local std::vector<void*> out;
  out.clear();
  for (int64_t i = 0; i < r.rows; ++i)
    for (int64_t q = 0; q < r.columns; ++q)
      out.push_back(at(end.out, r.out + i * r.out_row + q * r.out_step));
  kernels().finish[element(end.out.dtype())]({.out = out.data(),
                                              .sums = sums,
                                              .bias = end.bias ? end.bias + lane : nullptr,
                                              .rows = int64_t(out.size()),
                                              .sums_step = lanes,
                                              .from = lane,
                                              .width = std::min(lanes, end.out.dim(3) - lane),
                                              .beta = end.beta,
                                              .relu = end.relu});
}

void run(const Grouping& g, const Region& r, const Cell* weights, int64_t weights_panel, const Ending& end,
         Ahead& ahead) {
  thread_local std::vector<float> memory;
  const GroupedRow& kernels = g.kernels();
  const int64_t pixels = Groups(r.columns, kernels.pixels).size(0), together = g.together(weights_panel);
  const bool plain = end.plain(g), streams = end.streams(g, together);
  const int64_t taps = r.taps_together(g);
  // Of pixels that are apart the next line is read by the next panel, long before the next pixels are.
  const int64_t next = r.apart ? kLineCells : (pixels + taps - 1) * r.in_step;
  float* sums = plain ? nullptr : grow(memory, r.rows * r.columns * together * g.lanes);
  for (int64_t j = 0; j < g.panels; j += together) {
    const int64_t lane = j * g.lanes, lanes = std::min(together, g.panels - j) * g.lanes;
    kernels.product[taps - 1][pixels - 1](
        {.in = r.in + g.run_of(j) / g.elements,
         .in_row = r.in_row,
         .in_step = r.in_step,
         .taps = {.in = r.taps.data(),
                  .weights = r.weights.data(),
                  .count = int64_t(r.taps.size()),
                  .depth = g.channels / g.elements},
         .weights = weights + j * weights_panel,
         .panels = {.count = lanes / g.lanes,
                    .weights = weights_panel,
                    .shared = g.run / g.lanes,
                    .in_step = g.run / g.elements},
         .to = plain ? at(end.out, r.out + lane) : sums,
         .results = plain,
         .past_caches = streams,
         .to_row = plain ? r.out_row : r.columns * lanes,
         .to_step = plain ? r.out_step : lanes,
         .rows = r.rows,
         .columns = r.columns,
         .next = next,
         .fetch = ahead.take(grouped_lines(taps, g.elements) * r.rows * r.columns * lanes / g.lanes)});
    if (!plain) finish(r, end, lane, lanes, sums);
  }
}

void run(const Grouping& g, const Results& r, const Ending& end, Ahead& ahead) {
  const int64_t taps = int64_t(r.h.taps.size() * r.w.taps.size());
  for (const Axis::Range& h : r.h.ranges())
    for (const Axis::Range& w : r.w.ranges())
      run(g, Region(g, r, h, w), r.weights, taps * g.channels / g.elements * g.lanes, end, ahead);
}

// What the block reads that this thread is likely to take after the i-th: add(block, ahead) adds it.
template <class Add>
Ahead what_follows(const Blocks& blocks, int64_t i, Add add) {
  Ahead ahead;
  if (i += omp_get_num_threads(); i < blocks.count()) add(Block(blocks, i), ahead);
  return ahead;
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
                   const Ending& end, Ahead& ahead) {
  thread_local std::vector<Cell> memory;
  const int64_t P = c.y.dim(1), Q = c.y.dim(2), O = c.y.dim(3);
  const Rectangle seen = inside(window_of(c, b.first, b.last), c.x);
  const Windows x(g.kind, c.x, b.image, b.last_image, seen, memory, unit_of(c.x, g, c.geometry.stride));
  const Axis h = Axis::of_windows(c, 1, b.first, b.last), w = Axis::of_windows(c, 2, 0, Q);
  for (int64_t n = b.image; n < b.last_image; ++n)
    run(g,
        {.in = x.of(n) - seen.top * x.row(),
         .row = x.row(),
         .pixel = x.pixel(),
         .h = h,
         .w = w,
         .weights = packed.data(),
         .out = (n * P + b.first) * Q * O,
         .out_row = Q * O,
         .out_step = O},
        end, ahead);
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
              kernels().pair(to, w.data<bf16>() + from, w.data<bf16>() + from + one, together);
            else
              fill_cells(to, w.data<float>() + from, together);
          }
  return packed;
}

void data_block(const ConvArgs& c, const Grouping& g, const std::vector<Class>& classes, const Cells& packed,
                const Block& b, const Ending& end, Ahead& ahead) {
  thread_local std::vector<Cell> memory;
  const ConvGeometry& at = c.geometry;
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3), stride = at.stride;
  const Rectangle seen = inside(seen_by(c, b), c.y);
  const Windows y(g.kind, c.y, b.image, b.last_image, seen, memory, unit_of(c.y, g, 1));
  for (const Class& k : classes) {
    const EveryStride h(b.first, b.last, k.h, at), w(0, W, k.w, at);
    const auto axis = [&](const EveryStride& e, size_t i) {
      Axis a{e.count, (e.first + at.padding) / stride, 1, {}, c.y.dim(int(i) + 1)};
      for (const auto& tap : k.taps)
        if (tap[1 - i] == k.taps[0][1 - i]) a.taps.push_back(-(tap[i] * at.dilation / stride));
      return a;
    };
    for (int64_t n = b.image; n < b.last_image; ++n)
      run(g,
          {.in = y.of(n) - seen.top * y.row(),
           .row = y.row(),
           .pixel = y.pixel(),
           .h = axis(h, 0),
           .w = axis(w, 1),
           .weights = packed.data() + k.before * g.panels * g.lanes * g.channels / g.elements,
           .out = ((n * H + h.first) * W + w.first) * C,
           .out_row = stride * W * C,
           .out_step = stride * C},
          end, ahead);
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
  // Pixels that are apart are read in many steps, for which a cache holds those of the next block, too.
  const int64_t held = stride > 1 && in_place(c.x, g, stride) ? 2 : 1;
  const int64_t pixel = c.x.dim(3) / g.elements * stride * stride * held;
  const Blocks blocks(c.y.dim(0), c.y.dim(1), c.y.dim(2), pixel, 1);
#pragma omp parallel
  {
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < blocks.count(); ++i) {
      Ahead ahead = what_follows(blocks, i, [&c](const Block& b, Ahead& next) {
        fetch_seen(c, b.image, b.last_image, b.first, b.last, next);
      });
      forward_block(c, g, packed, Block(blocks, i), end, ahead);
    }
    fence_streams<V8>();
  }
}

void grouped_backward_data(const ConvArgs& c) {
  const Grouping g = Grouping::of(c);
  std::vector<Class> classes = classes_of(c);
  for (Class& k : classes) std::reverse(k.taps.begin(), k.taps.end());  // the last sees the first output
  const Cells packed = pack_data(c, g, classes);
  const Ending end{c.x, nullptr, c.beta, false};
  const int64_t stride = c.geometry.stride;
  const Blocks blocks(c.x.dim(0), c.x.dim(1), c.x.dim(2),
                      std::max<int64_t>(1, c.y.dim(3) / g.elements / (stride * stride)), stride);
#pragma omp parallel
  {
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < blocks.count(); ++i) {
      Ahead ahead = what_follows(blocks, i, [&c](const Block& b, Ahead& next) {
        const Rectangle seen = inside(seen_by(c, b), c.y);
        next.add_rows(c.y, b.image, b.last_image, seen.top, seen.bottom);
      });
      data_block(c, g, classes, packed, Block(blocks, i), end, ahead);
    }
    fence_streams<V8>();
  }
}

}  // namespace skein::cpu
