// What direct convolutions are computed in: cells of one f32, or of two bf16 where the
// processor multiplies them.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/backend.h"
#include "engine/cpu/convert.h"
#include "engine/cpu/kernels.h"
#include "engine/cpu/simd.h"

namespace skein::cpu {

inline bool amx_fits(const ConvArgs& c) {
  return amx_kernels() && c.x.dtype() == kBF16 && c.geometry.groups == 1 && c.x.dim(3) % 16 == 0 &&
         c.y.dim(3) % 16 == 0;
}

struct CellKind {
  int64_t elements;  // in a cell
  const TileKernels *wide, *slim;

  static CellKind of_floats() { return {1, &kernels().tiles, &kernels().slim_tiles}; }
  // Pairs where the image is bf16, the processor multiplies it, and both numbers of channels are even.
  static CellKind of(const ConvArgs& c) {
    const PairKernels* pairs = pair_kernels();
    if (!pairs || c.x.dtype() != kBF16 || c.x.dim(3) % 2 || c.y.dim(3) % 2) return of_floats();
    return {2, &pairs->tiles, &pairs->slim_tiles};
  }
  // The same of forward and data gradient, which AMX multiplies where it fits.
  static CellKind of_products(const ConvArgs& c) {
    if (!amx_fits(c)) return of(c);
    return {2, &amx_kernels()->tiles, &amx_kernels()->slim_tiles};
  }
  // Half a panel may be empty, not more.
  const TileKernels& tiles(int64_t outputs) const {
    const int64_t last = outputs % wide->lanes;
    return last && 2 * last <= wide->lanes ? *slim : *wide;
  }
};

inline int64_t panels(int64_t n, int64_t lanes) { return (n + lanes - 1) / lanes; }

// The address of an element.
inline void* at(const Tensor& t, int64_t i) { return static_cast<char*>(t.raw()) + i * size_of(t.dtype()); }

// Splits n things into as few groups of at most `most` as possible, of nearly equal size: 49 = 4 x 6 + 5 x 5,
// because a group of one or two costs nearly as much as one of four.
struct Groups {
  int64_t n, count, each, larger;
  Groups(int64_t things, int64_t most)
      : n(things), count((n + most - 1) / most), each(count ? n / count : 0), larger(n - each * count) {}
  int64_t first(int64_t i) const { return each * i + std::min(i, larger); }
  int64_t size(int64_t i) const { return each + (i < larger ? 1 : 0); }
  int64_t of(int64_t thing) const {  // the group it is in
    const int64_t in_larger = larger * (each + 1);
    return thing < in_larger ? thing / (each + 1) : larger + (thing - in_larger) / each;
  }
};

// Memory for cells that one call needs.
class Cells {
 public:
  explicit Cells(int64_t n) : memory_(scratch_bytes(4 * n)) {}
  Cell* data() const { return static_cast<Cell*>(memory_.raw()); }

 private:
  Tensor memory_;
};

// Grows a buffer that a thread keeps from call to call; what it returns begins at a line of the caches.
template <class T>
T* grow(std::vector<T>& v, int64_t n) {
  constexpr size_t kLine = 64, kMore = kLine / sizeof(T);
  if (v.size() < size_t(n) + kMore) v.resize(size_t(n) + kMore);
  return v.data() + (kLine - reinterpret_cast<uintptr_t>(v.data()) % kLine) % kLine / sizeof(T);
}

// to[i] = a[i] as f32, for i < n.
template <class T>
inline void fill_cells(Cell* to, const T* a, int64_t n) {
  float* f = reinterpret_cast<float*>(to);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) store8(f + i, load8(a + i));
  for (; i < n; ++i) f[i] = float(a[i]);
}

}  // namespace skein::cpu
