// How the channels of a grouped convolution lie in vectors.
#pragma once
#include <algorithm>
#include <vector>

#include "engine/cpu/window.h"

namespace skein::cpu {

struct Grouping {
  CellKind kind;
  int64_t channels;  // of a group, on both sides
  int64_t elements;  // of a cell
  int64_t lanes;     // floats of a vector
  int64_t run;       // channels that a vector of outputs reads: one group, or those of its lanes
  int64_t panels;    // vectors that hold all channels
  const GroupedKernels& all;

  static Grouping of(const ConvArgs& c) {
    const CellKind kind = CellKind::of(c);
    const int64_t channels = c.w.dim(3), lanes = cpu::kernels().width;
    const GroupedKernels& all = kind.elements == 2 ? pair_kernels()->grouped : cpu::kernels().grouped;
    return {kind, channels, kind.elements, lanes, std::max(channels, lanes), cpu::panels(c.x.dim(3), lanes),
            all};
  }
  const GroupedRow& kernels() const { return all.of(channels, lanes); }
  // The first of the channels that a panel's outputs read.
  int64_t run_of(int64_t panel) const { return panel * lanes / run * run; }
  // Panels whose weights, of so many cells each, stay in a first-level cache beside pixels: those of whole
  // groups, or a part of one. No weights: where no tap meets an image.
  int64_t together(int64_t weights) const {
    constexpr int64_t kCells = 5 << 10;
    const int64_t most = std::clamp<int64_t>(kCells / std::max<int64_t>(weights, 1), 1, panels),
                  shared = run / lanes;
    return most < shared ? 1 : most / shared * shared;
  }
  // What pixels of so many cells are rounded up to: whole vectors, and not a multiple of half a kilobyte, in
  // which neighbors would compete for few sets of a cache.
  int64_t unit(int64_t cells) const { return cells % 128 ? lanes : cells + 16; }
};

}  // namespace skein::cpu
