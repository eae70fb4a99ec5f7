// Weight gradients of depthwise convolutions: for every tap and channel a sum over pixels, block by block, a
// private sum a thread.
#include "engine/cpu/depthwise_conv.h"
#include "engine/cpu/direct_conv.h"
#include "engine/cpu/private_sums.h"
#include "engine/cpu/window.h"

namespace skein::cpu {

namespace {

// Adds a block's products to sums [tap][lanes], or sets them.
void add_block(const ConvArgs& c, const Block& b, int64_t lanes, float* sums, bool add) {
  thread_local std::vector<Cell> inputs, outputs;
  const auto& g = c.geometry;
  const int64_t Q = c.y.dim(2), planes = b.last_image - b.image, rows = b.last - b.first;
  const CellKind floats = CellKind::of_floats();
  const Windows x(floats, c.x, b.image, b.last_image, window_of(c, b.first, b.last), inputs, kernels().width);
  const Windows y(floats, c.y, b.image, b.last_image, {b.first, b.last, 0, Q}, outputs, kernels().width);
  std::vector<int64_t> taps;
  for (int64_t i = 0; i < c.w.dim(1); ++i)
    for (int64_t j = 0; j < c.w.dim(2); ++j)
      taps.push_back(i * g.dilation * x.row() + j * g.dilation * x.pixel());
  const Groups groups(int64_t(taps.size()), kMostTaps);
  for (int64_t i = 0; i < groups.count; ++i)
    kernels().depthwise.outer[groups.size(i) - 1](
        {.x = reinterpret_cast<const float*>(x.of(b.image)),
         .y = reinterpret_cast<const float*>(y.of(b.image)),
         .x_at = {planes, rows, Q, x.image(), g.stride * x.row(), g.stride * x.pixel()},
         .y_at = {planes, rows, Q, y.image(), y.row(), y.pixel()},
         .tap = taps.data() + groups.first(i),
         .lanes = lanes,
         .sums = sums + groups.first(i) * lanes,
         .add = add});
}

// dw [C][tap] <- beta dw + the threads' sums [tap][lanes].
void gather(const ConvArgs& c, int64_t lanes, const PrivateSums& sums) {
  const int64_t C = c.w.dim(0), taps = c.w.size() / C;
  std::vector<float> v(static_cast<size_t>(C));
  for (int64_t t = 0; t < taps; ++t) {
    sums.total(t * lanes, C, v.data());
    for (int64_t l = 0; l < C; ++l) settle(c.w.data<float>()[l * taps + t], v[size_t(l)], c.beta);
  }
}

}  // namespace

void depthwise_backward_weights(const ConvArgs& c) {
  const int64_t lanes = up_to_multiple(c.x.dim(3), kernels().width), size = c.w.size() / c.w.dim(0) * lanes;
  const int64_t stride = std::min<int64_t>(c.geometry.stride, c.w.dim(1));
  const Blocks blocks(c.y.dim(0), c.y.dim(1), c.y.dim(2), lanes * stride * stride, 1);
  const auto make = [&](int64_t i, int64_t, int64_t, float* sums, bool add) {
    add_block(c, Block(blocks, i), lanes, sums, add);
  };
  gather(c, lanes, PrivateSums(size, blocks.count(), 1, make));
}

}  // namespace skein::cpu
