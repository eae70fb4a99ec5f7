// Weight gradients of grouped convolutions: for every tap, and every channel and output of a group, a sum
// over pixels, block by block, a private sum a thread. In pairs a cell holds two neighboring pixels of a row.
#include "engine/cpu/ahead.h"
#include "engine/cpu/direct_conv.h"
#include "engine/cpu/grouped_conv.h"
#include "engine/cpu/grouping.h"
#include "engine/cpu/private_sums.h"

namespace skein::cpu {

namespace {

struct OuterPlan {
  Grouping grouping;
  int64_t taps;
  int64_t panel() const { return taps * grouping.channels * grouping.lanes; }  // [tap][output][lane]
  int64_t size() const { return grouping.panels * panel(); }
};

// A rectangle of some images as [image][row][column][channel], zero outside them, with steps in cells.
struct View {
  const Cell* at;
  int64_t image, row, pixel;
};

// The columns of a rectangle that become pairs: every `every`-th with the one `beside` columns further. Of
// each `period` pairs only the first `used` are made.
struct Pairing {
  int64_t every, beside, period, used;
};

View paired(const Tensor& t, const Block& b, const Rectangle& r, const Pairing& p, int64_t unit,
            std::vector<Cell>& memory) {
  const int64_t H = t.dim(1), W = t.dim(2), C = t.dim(3), columns = (r.width() + p.every - 1) / p.every;
  const int64_t pixel = up_to_multiple(C, unit), row = columns * pixel, image = r.height() * row;
  const std::vector<bf16> zeros(static_cast<size_t>(C));
  const int64_t right = std::min(W, r.right);
  const auto pair = kernels().pair;
  Cell* const all = grow(memory, (b.last_image - b.image) * image);
  Cell* to = all;
  for (int64_t n = b.image; n < b.last_image; ++n)
    for (int64_t h = r.top; h < r.bottom; ++h) {
      const bf16* from = h < 0 || h >= H ? nullptr : t.data<bf16>() + (n * H + h) * W * C;
      const auto find = [&](int64_t w) { return from && w >= 0 && w < right ? from + w * C : zeros.data(); };
      for (int64_t i = 0; i < columns; ++i, to += pixel)
        if (const int64_t w = r.left + i * p.every; i % p.period < p.used)
          pair(to, find(w), find(w + p.beside), C);
    }
  return {all, image, row, pixel};
}

View view_of(const Tensor& t, const Grouping& g, const Block& b, const Rectangle& r,
             std::vector<Cell>& memory) {
  const Windows all(g.kind, t, b.image, b.last_image, r, memory, g.unit(t.dim(3)));
  return {all.of(b.image), all.image(), all.row(), all.pixel()};
}

// Adds a block's products to sums [panel][tap][output][lane], or sets them.
void add_block(const ConvArgs& c, const OuterPlan& plan, const Block& b, Ahead& ahead, float* sums,
               bool add) {
  thread_local std::vector<Cell> inputs, outputs;
  const Grouping& g = plan.grouping;
  const int64_t Q = c.y.dim(2), stride = c.geometry.stride, dilation = c.geometry.dilation;
  const int64_t planes = b.last_image - b.image, rows = b.last - b.first, E = g.elements;
  const Rectangle seen = window_of(c, b.first, b.last), made{b.first, b.last, 0, Q};
  const Pairing pairs_of_x{1, stride, E * stride, (c.w.dim(2) - 1) * dilation + 1}, pairs_of_y{2, 1, 1, 1};
  const View x = E == 2 ? paired(c.x, b, seen, pairs_of_x, g.unit(c.x.dim(3)), inputs)
                        : view_of(c.x, g, b, seen, inputs);
  const View y = E == 2 ? paired(c.y, b, made, pairs_of_y, g.unit(c.y.dim(3)), outputs)
                        : view_of(c.y, g, b, made, outputs);
  std::vector<int64_t> taps;
  for (int64_t i = 0; i < c.w.dim(1); ++i)
    for (int64_t j = 0; j < c.w.dim(2); ++j) taps.push_back(dilation * (i * x.row + j * x.pixel));
  const Groups groups(plan.taps, g.kernels().taps);
  const int64_t columns = (Q + E - 1) / E;
  for (int64_t j = 0; j < g.panels; ++j)
    for (int64_t i = 0; i < groups.count; ++i)
      for (int64_t k = 0; k < g.channels; k += g.kernels().outputs)
        g.kernels().outer[groups.size(i) - 1](
            {.x = x.at + j * g.lanes,
             .y = y.at + g.run_of(j) + k,
             .x_at = {planes, rows, columns, x.image, stride * x.row, E * stride * x.pixel},
             .y_at = {planes, rows, 0, y.image, y.row, y.pixel},
             .tap = taps.data() + groups.first(i),
             .sums = sums + j * plan.panel() + (groups.first(i) * g.channels + k) * g.lanes,
             .sums_step = g.channels * g.lanes,
             .add = add,
             .fetch = ahead.take(2 * planes * rows * columns)});
}

// dw [O][tap][K] <- beta dw + the threads' sums.
void gather(const ConvArgs& c, const OuterPlan& plan, const PrivateSums& sums) {
  const Grouping& g = plan.grouping;
  const int64_t K = g.channels, together = std::min(K, g.lanes), O = c.w.dim(0);
  float v[kMostLanes];
  float* dw = c.w.data<float>();
  for (int64_t i = 0; i < plan.size(); i += together) {
    const int64_t channel = i / plan.panel() * g.lanes + i % g.lanes, tap = i / (K * g.lanes) % plan.taps;
    if (channel >= O) continue;
    float* to = dw + ((channel / K * K + i / g.lanes % K) * plan.taps + tap) * K + channel % K;
    sums.total(i, together, v);
    for (int64_t l = 0; l < together; ++l) settle(to[l], v[l], c.beta);
  }
}

}  // namespace

void grouped_backward_weights(const ConvArgs& c) {
  const OuterPlan plan{Grouping::of(c), c.w.dim(1) * c.w.dim(2)};
  const int64_t stride = std::min<int64_t>(c.geometry.stride, c.w.dim(1));
  // Of bf16 a cache holds the images beside their pairs.
  const int64_t pixel = c.x.dim(3) * stride * stride * plan.grouping.elements;
  const Blocks blocks(c.y.dim(0), c.y.dim(1), c.y.dim(2), pixel, 1);
  const auto make = [&](int64_t i, int64_t, int64_t end, float* sums, bool add) {
    Ahead ahead;
    if (i + 1 < end) {
      const Block next(blocks, i + 1);
      ahead.add_rows(c.y, next.image, next.last_image, next.first, next.last);
      fetch_seen(c, next.image, next.last_image, next.first, next.last, ahead);
    }
    add_block(c, plan, Block(blocks, i), ahead, sums, add);
  };
  gather(c, plan, PrivateSums(plan.size(), blocks.count(), 1, make));
}

}  // namespace skein::cpu
