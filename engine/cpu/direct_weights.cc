// Weight gradients: sums over pixels of (image channels) x (outputs), block by block, a private sum a thread.
#include <omp.h>

#include "engine/cpu/convert.h"
#include "engine/cpu/direct_conv.h"
#include "engine/cpu/tile.h"
#include "engine/cpu/window.h"

namespace skein::cpu {

namespace {

constexpr int64_t kBlockFloats = 64 << 10;  // in both operands of a block: half a second-level cache
// In a block, which takes several images if necessary, because tiles are added to memory after each block.
constexpr int64_t kLeastPixels = 196;
constexpr int64_t kSlot = 8;  // floats a pixel has in a panel: kRows and what one load brings along

// How a weight gradient is cut: `taps` window positions of `channels` each, in tiles of up to kRows x kLanes.
struct Plan {
  int64_t taps, channels, panels, groups;
  bool merged;  // few channels: a window's row of S x C floats counts as the channels
  int64_t size() const { return panels * taps * groups * kRows * kLanes; }
};

Plan plan_of(const ConvArgs& c) {
  const int64_t R = c.w.dim(1), S = c.w.dim(2), C = c.w.dim(3);
  const bool merged = C < 8 && c.geometry.dilation == 1;
  const int64_t channels = merged ? S * C : C;
  return {merged ? R : R * S, channels, (c.w.dim(0) + kLanes - 1) / kLanes, Groups{channels}.count, merged};
}

// dy [pixels, O] -> [panel][all pixels][16], pixels from `at` on; their sums are added to `sums` if given.
template <class T>
void pack_outputs(float* to, const T* dy, int64_t at, int64_t pixels, int64_t all, int64_t O, float* sums) {
  for (int64_t i = 0; i < pixels; ++i)
    for (int64_t j = 0; j * kLanes < O; ++j) {
      const T* from = dy + i * O + j * kLanes;
      float* t = to + (j * all + at + i) * kLanes;
      const int64_t width = std::min<int64_t>(kLanes, O - j * kLanes);
      if (width == kLanes)
        copy_f32(t, from, kLanes);
      else
        for (int64_t l = 0; l < kLanes; ++l) t[l] = l < width ? float(from[l]) : 0.f;
      for (int64_t l = 0; sums && l < width; ++l) sums[j * kLanes + l] += t[l];
    }
}

// Pixels [C] a step apart -> [group][all pixels][kSlot], pixels from `at` on.
template <class T>
void pack_inputs(float* to, const T* x, int64_t step, int64_t at, int64_t pixels, int64_t all, int64_t C) {
  const Groups groups{C};
  to += at * kSlot;
  for (int64_t i = 0; i < pixels; ++i, x += step, to += kSlot)
    for (int64_t g = 0; g < groups.count; ++g) {
      const int64_t first = groups.first(g);
      float* slot = to + g * all * kSlot;
      if (first + kSlot <= C)
        store8(slot, load8(x + first));
      else
        for (int64_t l = 0; l < groups.size(g); ++l) slot[l] = float(x[first + l]);
    }
}

// The thread's buffers, kept from call to call.
struct Memory {
  std::vector<float> staged, inputs, outputs;
};

// Some images' rows of outputs, the same rows of each.
struct Block {
  int64_t image, images, first, last;
};

// What a block's tiles read: dy [panel][pixel][16], x [group][row][column][slot].
struct Operands {
  const float *x, *dy;
  int64_t width, slot, group;  // in x: columns, floats a column, floats from one group to the next
  Pixels pixels;
};

// Windows of one pixel need no neighbors, so only the pixels that are used are packed, in one long row.
template <class T>
Operands pack_points(const ConvArgs& c, const Plan& plan, const Block& b, Memory& memory) {
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3), Q = c.y.dim(2), stride = c.geometry.stride;
  const int64_t all = b.images * (b.last - b.first) * Q;
  float* x = grow(memory.inputs, plan.groups * all * kSlot);
  int64_t at = 0;
  for (int64_t n = b.image; n < b.image + b.images; ++n)
    for (int64_t p = b.first; p < b.last; ++p, at += Q)
      pack_inputs(x, c.x.data<T>() + (n * H + p * stride) * W * C, stride * C, at, Q, all, C);
  return {x, memory.outputs.data(), all, kSlot, all * kSlot, {1, 1, all, 0, 0, kSlot}};
}

template <class T>
Operands pack_windows(const ConvArgs& c, const Plan& plan, const Block& b, Memory& memory) {
  const auto& g = c.geometry;
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3), S = c.w.dim(2), Q = c.y.dim(2);
  const Rectangle r{b.first * g.stride - g.padding,
                    (b.last - 1) * g.stride - g.padding + (c.w.dim(1) - 1) * g.dilation + 1, -g.padding,
                    (Q - 1) * g.stride - g.padding + (S - 1) * g.dilation + 1};
  const int64_t height = r.bottom - r.top, width = r.right - r.left, pixels = height * width;
  const int64_t slot = plan.merged ? C : kSlot, all = b.images * pixels;
  float* x = grow(memory.inputs, (plan.merged ? 1 : plan.groups) * all * slot + 32);
  for (int64_t i = 0; i < b.images; ++i) {
    float* staged = plan.merged ? x + i * pixels * C : grow(memory.staged, pixels * C);
    stage(staged, c.x.data<T>() + (b.image + i) * H * W * C, H, W, C, r);
    if (!plan.merged) pack_inputs<float>(x, staged, C, i * pixels, pixels, all, C);
  }
  return {
      x,          memory.outputs.data(),
      width,      slot,
      all * slot, {b.images, b.last - b.first, Q, pixels * slot, g.stride * width * slot, g.stride * slot}};
}

template <class T>
Operands pack(const ConvArgs& c, const Plan& plan, const Block& b, Memory& memory, float* bias) {
  const int64_t P = c.y.dim(1), Q = c.y.dim(2), O = c.y.dim(3), pixels = (b.last - b.first) * Q;
  float* dy = grow(memory.outputs, plan.panels * b.images * pixels * kLanes);
  for (int64_t i = 0; i < b.images; ++i)
    pack_outputs(dy, c.y.data<T>() + ((b.image + i) * P + b.first) * Q * O, i * pixels, pixels,
                 b.images * pixels, O, bias);
  const bool points = c.w.dim(1) == 1 && c.w.dim(2) == 1 && c.geometry.padding == 0 && !plan.merged;
  return points ? pack_points<T>(c, plan, b, memory) : pack_windows<T>(c, plan, b, memory);
}

template <class T>
void add_block(const ConvArgs& c, const Plan& plan, const Block& b, float* sum, float* bias, bool add) {
  thread_local Memory memory;
  const Operands at = pack<T>(c, plan, b, memory, bias);
  const int64_t S = c.w.dim(2), pixels = at.pixels.planes * at.pixels.rows * at.pixels.columns;
  const Groups groups{plan.channels};
  for (int64_t j = 0; j < plan.panels; ++j)
    for (int64_t t = 0; t < plan.taps; ++t) {
      const int64_t tr = plan.merged ? t : t / S, ts = plan.merged ? 0 : t % S;
      const float* shifted = at.x + (tr * at.width + ts) * c.geometry.dilation * at.slot;
      for (int64_t i = 0; i < groups.count; ++i, sum += kRows * kLanes) {
        const float* x = shifted + (plan.merged ? groups.first(i) : i * at.group);
        with_rows(groups.size(i),
                  [&](auto m) { outer_tile<m>(x, at.dy + j * pixels * kLanes, at.pixels, sum, add); });
      }
    }
}

// dw [O][tap][channel] <- beta dw + the threads' sums, in the order of threads.
void gather(const ConvArgs& c, const Plan& plan, const float* sums, int64_t threads) {
  const int64_t O = c.w.dim(0), K = plan.taps * plan.channels;
  const Groups groups{plan.channels};
  float* dw = c.w.data<float>();
#pragma omp parallel for schedule(static) if (c.w.size() > 1 << 14)
  for (int64_t j = 0; j < plan.panels; ++j)
    for (int64_t i = 0; i < plan.taps * groups.count; ++i) {
      const int64_t group = i % groups.count, k = i / groups.count * plan.channels + groups.first(group);
      const int64_t at = (j * plan.taps * groups.count + i) * kRows * kLanes;
      for (int64_t o = j * kLanes; o < std::min(O, (j + 1) * kLanes); ++o)
        for (int64_t l = 0; l < groups.size(group); ++l) {
          float v = 0;
          for (int64_t t = 0; t < threads; ++t) v += sums[t * plan.size() + at + l * kLanes + o - j * kLanes];
          float& y = dw[o * K + k + l];
          y = c.beta == 0 ? v : v + c.beta * y;
        }
    }
}

}  // namespace

void direct_backward_weights(const ConvArgs& c) {
  const Plan plan = plan_of(c);
  const int64_t N = c.y.dim(0), P = c.y.dim(1), Q = c.y.dim(2), O = c.y.dim(3);
  const int64_t seen = std::min<int64_t>(c.geometry.stride, c.w.dim(1));
  const int64_t per_row = Q * (O + c.x.dim(3) * seen * seen * kSlot / kRows);
  const int64_t rows = std::clamp<int64_t>(kBlockFloats / per_row, 1, P), cuts = (P + rows - 1) / rows;
  const int64_t threads = std::min<int64_t>(omp_get_max_threads(), cuts > 1 ? N * cuts : N);
  const int64_t images = cuts > 1 ? 1 : std::clamp<int64_t>(kLeastPixels / (P * Q), 1, N / threads);
  const Tensor sums({threads * plan.size()}), bias = c.bias ? Tensor::zeros({threads, O}) : Tensor();
  visit_float(c.x.dtype(), [&](auto zero) {
#pragma omp parallel for schedule(static, 1) num_threads(int(threads))
    for (int64_t t = 0; t < threads; ++t) {
      const int64_t from = N * cuts * t / threads, to = N * cuts * (t + 1) / threads;
      for (int64_t i = from; i < to; i += images) {
        const int64_t first = i % cuts * rows;
        add_block<decltype(zero)>(
            c, plan, {i / cuts, std::min(images, to - i), first, std::min(first + rows, P)},
            sums.data<float>() + t * plan.size(), bias ? bias.data<float>() + t * O : nullptr, i > from);
      }
    }
  });
  gather(c, plan, sums.data<float>(), threads);
  for (int64_t o = 0; c.bias && o < O; ++o) {
    float v = 0, &y = c.bias.data<float>()[o];
    for (int64_t t = 0; t < threads; ++t) v += bias.data<float>()[t * O + o];
    y = c.beta == 0 ? v : v + c.beta * y;
  }
}

}  // namespace skein::cpu
