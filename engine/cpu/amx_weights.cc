// dw[o][tap][c] = sum over p of dy[o][p - offset of the tap] x[p][c], where p counts the pixels of a block of
// images as one line: rows of x with the padding between them, and dy at the same places, zero elsewhere. So
// one product sums over a whole block, and a tap only shifts its operands. Strided windows see the pixels of
// each phase (their position modulo the stride) as a line of its own.
#include "engine/cpu/amx_weights.h"

#include <omp.h>

#include "engine/cpu/blocks.h"
#include "engine/cpu/cells.h"

namespace skein::cpu {

namespace {

constexpr int64_t kSide = 16, kChannels = 32;  // of a register; of a group
constexpr int64_t kFront = 32;                 // pixels of zeros before dy, which odd shifts read
constexpr int64_t kAtOnce = 4;                 // groups that are packed together, because they lie together
constexpr int64_t kPart = 2 * kSide;           // pixels that a register holds of a channel
constexpr int64_t kBytes = 2;                  // of an element

// Where a tap finds its pixels: in which of the phases that any tap sees, and how far from the first.
struct Tap {
  size_t phase;
  int64_t offset;
};
struct Phase {
  int64_t row, column;
  bool operator==(const Phase&) const = default;
};

// What the sums take for a pixel of x: itself; or, of few channels, a window's row of S x C elements as it
// lies in memory, so that windows are one pixel wide, and registers full.
struct Seen {
  int64_t channels, columns;  // of such a pixel; of a window
  int64_t lanes() const { return up_to_multiple(channels, kSide); }
};

bool merges(const ConvArgs& c) { return c.w.dim(2) > 1 && c.x.dim(3) <= kSide && c.geometry.dilation == 1; }

Seen seen_of(const ConvArgs& c) {
  if (merges(c)) return {c.w.dim(2) * c.x.dim(3), 1};
  return {c.x.dim(3), c.w.dim(2)};
}

// How a line is laid out. Rows may share padding: what a window sees to the right of one row is then what the
// next one has to the left, zero in both.
struct Line {
  int64_t images, first, last;  // a block: rows of y, the same of each image
  int64_t rows, pitch;          // of an image in the line, pixels of a row
  int64_t most;                 // the largest offset of a tap
  int64_t cells;                // of the line and what is read after it, in pairs of pixels
};

// The fewest places that a row (or column) of `outputs` takes: so many that every place which a window sees
// beyond them lies in the padding before the next row and, seen from this one, behind its end.
int64_t places(int64_t outputs, int64_t extent, int64_t window, const ConvGeometry& g) {
  const int64_t all = outputs + (window - 1) * g.dilation / g.stride;
  for (int64_t n = outputs; n < all; ++n) {
    bool zero = true;
    for (int64_t phase = 0; phase < g.stride; ++phase)
      zero =
          zero && n * g.stride + phase - g.padding >= extent && (all - 1 - n) * g.stride + phase < g.padding;
    if (zero) return n;
  }
  return all;
}

Line line_of(const ConvArgs& c, int64_t images, int64_t first, int64_t last) {
  const auto& g = c.geometry;
  const int64_t columns = seen_of(c).columns, below = (c.w.dim(1) - 1) * g.dilation / g.stride,
                right = (columns - 1) * g.dilation / g.stride;
  Line l{images, first, last, 0, 0, 0, 0};
  l.pitch = places(c.y.dim(2), c.x.dim(2), columns, g);
  l.rows = images > 1 ? places(last - first, c.x.dim(1), c.w.dim(1), g) : last - first + below;
  l.most = below * l.pitch + right;
  l.cells = up_to_multiple(images * l.rows * l.pitch + l.most + 2 * kPart, kPart) / 2;
  return l;
}

// Addresses of a line's pixels, one after the other.
struct Addresses {
  std::vector<const void*> at;
  void add(const void* first, int64_t step, int64_t count) {  // step: bytes
    const size_t n = at.size();
    at.resize(n + size_t(count));
    const void** const to = at.data() + n;
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<const char*>(first) + i * step;
  }
  void fill(int64_t pixels, const void* zeros) { at.resize(size_t(pixels), zeros); }
};

// What a thread keeps from call to call.
struct Memory {
  Addresses dy;
  std::vector<Addresses> x;  // by phase
  std::vector<bf16> edges;   // rows of windows that leave the image, in part zeros
  std::vector<Cell> dy_cells, x_cells, turned;
  std::vector<int64_t> first;  // channels of groups
};

// One block of images of one thread.
class AmxBlock {
 public:
  AmxBlock(const ConvArgs& c, const Line& line, int64_t image, const Tensor& zeros, Memory& memory)
      : c_(c), seen_(seen_of(c)), line_(line), image_(image), zeros_(zeros.raw()), memory_(memory) {
    list_taps();
    list_dy();
    if (memory_.x.size() < phases_.size()) memory_.x.resize(phases_.size());
    memory_.edges.clear();
    if (seen_.columns < c.w.dim(2))  // the lists hold addresses of what is added
      memory_.edges.reserve(phases_.size() *
                            size_t(line_.images * line_.rows * line_.pitch * seen_.channels));
    for (size_t i = 0; i < phases_.size(); ++i) list_x(phases_[i], memory_.x[i]);
  }

  // dw += its part, or dw = that. The smaller operand is held whole, and the other one's groups pass by it;
  // those of dy if they are equal, because then the sums that are written lie close together.
  void run(float* dw, bool add) {
    const int64_t os = panels(c_.y.dim(3), kChannels), cs = panels(seen_.channels, kChannels);
    const bool hold_dy = os < cs * int64_t(phases_.size());
    const int64_t dy = kChannels * dy_step(), x = int64_t(phases_.size()) * line_.cells * kChannels;
    const int64_t held = hold_dy ? os : cs, passing = hold_dy ? cs : os;
    Cell* const dy_at = grow(memory_.dy_cells, (hold_dy ? os : std::min(os, kAtOnce)) * dy);
    Cell* const x_at = grow(memory_.x_cells, (hold_dy ? std::min(cs, kAtOnce) : cs) * x);
    hold_dy ? turn_dy(0, os, dy_at) : pack_x(0, cs, x_at);
    for (int64_t first = 0; first < passing; first += kAtOnce) {
      const int64_t n = std::min(kAtOnce, passing - first);
      hold_dy ? pack_x(first, n, x_at) : turn_dy(first, n, dy_at);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < held; ++j)
          hold_dy ? multiply(j, dy_at + j * dy, first + i, x_at + i * x, dw, add)
                  : multiply(first + i, dy_at + i * dy, j, x_at + j * x, dw, add);
    }
  }

 private:
  int64_t dy_step() const { return kFront / 2 + line_.cells; }

  void list_taps() {
    const auto& g = c_.geometry;
    for (int64_t r = 0; r < c_.w.dim(1) * g.dilation; r += g.dilation)
      for (int64_t s = 0; s < seen_.columns * g.dilation; s += g.dilation) {
        const Phase phase{r % g.stride, s % g.stride};
        const auto known = std::find(phases_.begin(), phases_.end(), phase);
        taps_.push_back({size_t(known - phases_.begin()), r / g.stride * line_.pitch + s / g.stride});
        if (known == phases_.end()) phases_.push_back(phase);
      }
  }

  void list_dy() {
    const int64_t P = c_.y.dim(1), Q = c_.y.dim(2), O = c_.y.dim(3);
    Addresses& to = memory_.dy;
    to.at.clear();
    to.add(zeros_, 0, kFront);
    for (int64_t n = 0; n < line_.images; ++n)
      for (int64_t r = 0; r < line_.rows; ++r) {
        const int64_t p = line_.first + r, inside = p < line_.last ? Q : 0;
        to.add(at(c_.y, ((image_ + n) * P + p) * Q * O), O * kBytes, inside);
        to.add(zeros_, 0, line_.pitch - inside);
      }
    to.fill(2 * dy_step(), zeros_);
  }

  void list_x(const Phase& phase, Addresses& to) const {
    const auto& g = c_.geometry;
    const int64_t H = c_.x.dim(1), W = c_.x.dim(2), C = c_.x.dim(3), width = seen_.channels / C;
    const int64_t left = phase.column - g.padding;  // the column of the first pixel
    const int64_t first = std::clamp<int64_t>(-floor_div(left, g.stride), 0, line_.pitch),
                  last = std::clamp(floor_div(W - width - left, g.stride) + 1, first, line_.pitch);
    to.at.clear();
    for (int64_t n = 0; n < line_.images; ++n)
      for (int64_t r = 0; r < line_.rows; ++r) {
        const int64_t h = (line_.first + r) * g.stride + phase.row - g.padding;
        if (h < 0 || h >= H) {
          to.add(zeros_, 0, line_.pitch);
          continue;
        }
        const int64_t row = ((image_ + n) * H + h) * W * C;
        for (int64_t q = 0; q < first; ++q) to.at.push_back(edge(row, left + q * g.stride));
        to.add(at(c_.x, row + (left + first * g.stride) * C), g.stride * C * kBytes, last - first);
        for (int64_t q = last; q < line_.pitch; ++q) to.at.push_back(edge(row, left + q * g.stride));
      }
    to.fill(2 * line_.cells, zeros_);
  }

  // A pixel from column w on that leaves the row of the image which begins at element `row`.
  const void* edge(int64_t row, int64_t w) const {
    const int64_t W = c_.x.dim(2), C = c_.x.dim(3), right = w + seen_.channels / C;
    if (right <= 0 || w >= W) return zeros_;
    const bf16* const x = c_.x.data<bf16>() + row;
    std::vector<bf16>& edges = memory_.edges;
    const int64_t from = int64_t(edges.size());
    edges.resize(size_t(from + seen_.channels));
    std::copy(x + std::max<int64_t>(w, 0) * C, x + std::min(right, W) * C,
              edges.begin() + from + std::max<int64_t>(-w, 0) * C);
    return edges.data() + from;
  }

  // Groups of channels of the pixels, [group][pair][channel]: `step` cells from one to the next.
  void pack(const Addresses& from, int64_t group, int64_t groups, int64_t channels, Cell* to, int64_t step) {
    memory_.first.clear();
    for (int64_t i = group; i < group + groups; ++i) memory_.first.push_back(i * kChannels);
    kernels().pack_pairs({.to = to,
                          .group = step,
                          .slot = kChannels,
                          .groups = groups,
                          .columns = int64_t(from.at.size()) / 2,
                          .channels = channels,
                          .first = memory_.first.data(),
                          .a = from.at.data(),
                          .b = from.at.data() + 1,
                          .step = 2});
  }
  void turn_dy(int64_t group, int64_t groups, Cell* to) {
    const int64_t step = dy_step() * kChannels;
    Cell* const packed = grow(memory_.turned, groups * step);
    pack(memory_.dy, group, groups, c_.y.dim(3), packed, step);
    for (int64_t i = 0; i < groups; ++i)
      kernels().transpose(to + i * step, dy_step(), packed + i * step, dy_step(), kChannels);
  }
  void pack_x(int64_t group, int64_t groups, Cell* to) {
    const int64_t step = line_.cells * kChannels, phases = int64_t(phases_.size());
    for (int64_t i = 0; i < phases; ++i)
      pack(memory_.x[size_t(i)], group, groups, seen_.channels, to + i * step, phases * step);
  }

  void multiply(int64_t og, const Cell* dy, int64_t cg, const Cell* x, float* dw, bool add) const {
    const int64_t C = seen_.lanes(), K = int64_t(taps_.size()) * C;
    const int64_t outputs = std::min(kChannels, c_.y.dim(3) - og * kChannels);
    for (size_t t = 0; t < taps_.size(); ++t) {
      const Tap& tap = taps_[t];
      const int64_t from = tap.offset / 2, shift = tap.offset % 2;  // in pairs of x, in pixels of dy
      const auto* a = reinterpret_cast<const bf16*>(dy) + kFront - shift;
      float* const sums = dw + og * kChannels * K + int64_t(t) * C + cg * kChannels;
      const int64_t pixels = line_.images * line_.rows * line_.pitch + shift;
      amx_kernels()->outer({.a = {a, a + 2 * kSide * dy_step()},
                            .b = x + (int64_t(tap.phase) * line_.cells + from) * kChannels,
                            .operands = outputs / kSide,
                            .lanes = std::min(kChannels, C - cg * kChannels),
                            .depth = up_to_multiple(pixels, kPart) / 2,
                            .a_step = dy_step(),
                            .b_step = kChannels,
                            .sums = {sums, sums + kSide * K},
                            .sums_step = K,
                            .add = add});
    }
  }

  const ConvArgs& c_;
  const Seen seen_;
  const Line line_;
  const int64_t image_;
  const void* zeros_;
  std::vector<Tap> taps_;
  std::vector<Phase> phases_;
  Memory& memory_;
};

// Pixels of a block: few enough that a second-level cache holds a group of both operands and one of them
// whole, and so many that the sums are not read and written too often.
int64_t pixels_at_once(const ConvArgs& c) {
  constexpr int64_t kHeld = 512 << 10;  // elements
  return std::clamp<int64_t>(kHeld / std::min(c.x.dim(3), c.y.dim(3)), 512, 2048);
}

}  // namespace

bool amx_fits_weights(const ConvArgs& c) {
  constexpr int64_t kMost = 4 * kSide;  // of a merged pixel, of an image whose channels fill no register
  if (!amx_kernels() || c.x.dtype() != kBF16 || c.geometry.groups != 1 || c.y.dim(3) % kSide) return false;
  return c.x.dim(3) % kSide == 0 || (merges(c) && seen_of(c).channels <= kMost);
}

void amx_backward_weights(const ConvArgs& c) {
  const int64_t N = c.y.dim(0), P = c.y.dim(1), Q = c.y.dim(2);
  const int64_t most = pixels_at_once(c), rows = std::clamp<int64_t>(most / Q, 1, P),
                cuts = (P + rows - 1) / rows;
  const int64_t threads = std::min<int64_t>(omp_get_max_threads(), N * cuts);
  const int64_t images = cuts > 1 ? 1 : std::clamp<int64_t>(most / (P * Q), 1, (N + threads - 1) / threads);
  const Seen seen = seen_of(c);
  const int64_t C = seen.channels, L = seen.lanes(), filters = c.w.size() / C;
  const int64_t own = c.beta == 0 && L == C ? 0 : 1;  // whose sums stand beside dw, not in it
  const Tensor sums({(threads - 1 + own) * filters * L});
  const Tensor zeros = Tensor::zeros({std::max(C, c.y.dim(3))}, kBF16);
  float* const dw = c.w.data<float>();
  const auto sums_of = [&](int64_t t) {
    return t + own == 0 ? dw : sums.data<float>() + (t - 1 + own) * filters * L;
  };
#pragma omp parallel for schedule(static, 1) num_threads(int(threads))
  for (int64_t t = 0; t < threads; ++t) {
    thread_local Memory memory;
    const int64_t from = N * cuts * t / threads, to = N * cuts * (t + 1) / threads;
    for (int64_t i = from; i < to; i += images) {
      const int64_t first = i % cuts * rows;
      const Line line = line_of(c, std::min(images, to - i), first, std::min(first + rows, P));
      AmxBlock(c, line, i / cuts, zeros, memory).run(sums_of(t), i > from);
    }
    amx_kernels()->release();
  }
  if (threads == 1 && !own) return;
#pragma omp parallel for schedule(static) if (c.w.size() > 1 << 14)
  for (int64_t i = 0; i < filters; ++i)
    for (int64_t j = 0; j < C; ++j) {
      float& to = dw[i * C + j];
      float v = !own ? to : c.beta == 0 ? 0 : c.beta * to;
      for (int64_t t = 1 - own; t < threads; ++t) v += sums_of(t)[i * L + j];
      to = v;
    }
}

}  // namespace skein::cpu
