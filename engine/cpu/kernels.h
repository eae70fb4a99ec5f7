// The CPU's own kernels: written once for vectors of any width, compiled for each instruction set, and chosen
// once, when the program first needs one. Their arguments are plain addresses; callers check shapes and types
// and divide the work among threads.
#pragma once
#include "engine/cpu/pool_plane.h"
#include "engine/dtype.h"

namespace skein::cpu {

// Which element type a kernel was compiled for: the index into its row of the table.
inline size_t element(DType t) { return t == kF32 ? 0 : t == kBF16 ? 1 : 2; }

// How a norm's backward knows where the ReLU passed values: there is no ReLU; from the sign of y; or from x,
// which is read anyway, if no residual was added.
enum class Mask { kNone, kOutput, kInput };

// Images seen as rows of `width` elements, a whole number of pixels and of vectors. A pass takes the rows
// [first, last), and of each the first `length` elements: all of them, unless it is a single row.
struct NormRows {
  int64_t first, last, width, length;
};
// What a pass reads and writes; what it does not use is null. Constants are of one row.
// Large class: the operands of all kernels of a norm, each of which uses some.
struct NormPass {
  const void *x = nullptr, *residual = nullptr, *y = nullptr, *dy = nullptr;
  void *out = nullptr, *dr = nullptr;                       // y or dx; the masked dy
  const float *mean = nullptr, *k = nullptr, *b = nullptr;  // y = (x - mean) k + b
  const float *p = nullptr, *q = nullptr, *r = nullptr;     // dx = p dy + q (x - mean) + r
  float low = 0, out_beta = 0, dr_beta = 0;                 // y is at least `low`
  bool past_caches = false;  // how `out` is written, which must be aligned to vectors
};
struct NormKernels {
  // sums[j] += x - mean, sums[width + j] += (x - mean)^2
  void (*statistics)(const NormPass&, const NormRows&, float* sums);
  void (*apply)(const NormPass&, const NormRows&);  // out = max(low, y + residual)
  // By Mask: sums[j] += dy, sums[width + j] += dy (x - mean), dy masked; and dr = dy masked.
  void (*gradient_sums[3])(const NormPass&, const NormRows&, float* sums);
  // By Mask: out = dx + out_beta out, dr = dy masked + dr_beta dr.
  void (*gradient[3])(const NormPass&, const NormRows&);
};

// Each computes one row of its result.
struct PoolKernels {
  void (*maximum)(const PoolPlane&, int64_t row);
  void (*average)(const PoolPlane&, int64_t row);
  void (*maximum_gradient)(const PoolPlane&, int64_t row);
  void (*average_gradient)(const PoolPlane&, int64_t row);
};

// The unit that tiles multiply: one f32, or two bf16 whose products are added to the same sum.
using Cell = uint32_t;

inline constexpr int64_t kLineBytes = 64, kLineCells = kLineBytes / sizeof(Cell);  // of the caches
inline constexpr int kMostRows = 12, kMostLanes = 32;

// Where tiles write results: rows[i][from + lane] <- the sum + beta itself, in the tiles' own type.
struct TileResults {
  void* const* rows = nullptr;  // one of them may be null if tiles want equal steps
  int64_t from = 0;
  float beta = 0;
  bool past_caches = false;  // how rows are written, which must be aligned to vectors; beta is 0
  // For each lane: what is written, before it is rounded, and its square are added over rows. Null if that is
  // not wanted, or if tiles want equal steps.
  float *sums = nullptr, *squares = nullptr;
};
// sums[i][lane] = (add ? itself : 0) + sum over taps t and k < depth of in[i][tap[t] + k]
// weights[t][k][lane]; or that is written to `out`, if it has rows.
struct TileProduct {
  int64_t rows;
  const Cell* const* in;
  const int64_t* tap;
  int64_t taps, depth;
  const Cell* weights;
  float* sums;
  int64_t sums_step;  // floats from one row to the next
  bool add;
  TileResults out = {};
  const Cell* const* next = nullptr;  // what the caller reads next: fetched, each row as `in`
  // At equal steps `in` rises by one step over rows [0, half), and by one, maybe another, over [half, rows).
  int64_t half = 0;
};

// The layout of pixels: planes of rows of columns, with these steps, in cells.
struct Pixels {
  int64_t planes, rows, columns, plane_step, row_step, step;
};
// sums[i][lane] = (add ? itself : 0) + sum over pixels of x[pixel + i] y[pixel][lane]
struct TileOuter {
  const Cell *x, *y;
  Pixels at;       // of x
  int64_t y_step;  // from each pixel to the next, in y
  float* sums;
  bool add;
  const char* fetch = nullptr;  // where as many lines as there are pixels are fetched
};

// The tiles of one kind: as many sums as registers hold.
struct TileKernels {
  int rows, lanes;     // of the largest
  int at_equal_steps;  // rows of each half of a product, whose `in` must rise by equal steps; 0: lie anywhere
  DType type;          // f32 or, for pairs, bf16
  void (*product)(const TileProduct&);
  // Makes the results of this thread's products so far visible; until then `out` must live, but not what
  // else they were given. Null: they are visible at once.
  void (*complete)();
  void (*outer[kMostRows])(const TileOuter&);  // by rows - 1
  // As many multiply-adds as `times` times the largest tile, all from the same rows + lanes cells: what a
  // processor can do at most, for benchmarks.
  void (*most)(const Cell* cells, int64_t times);
};

// For depthwise convolutions, in which every channel is a lane of its own; lanes are a multiple of the width.
inline constexpr int kMostPixels = 8, kMostTaps = 9;

// sums[row][column][lane] = sum over taps of in[row][column][tap[t] + lane] weights[t][lane]
struct DepthwiseProduct {
  const float* in;
  int64_t in_row, in_step;
  const int64_t* tap;
  int64_t taps, lanes;
  const float* weights;
  float* sums;
  int64_t sums_row, sums_step, rows, columns;
};
// sums[t][lane] = (add ? itself : 0) + sum over pixels of x[pixel + tap[t] + lane] y[pixel + lane]
struct DepthwiseOuter {
  const float *x, *y;
  Pixels x_at, y_at;  // which differ in their steps
  const int64_t* tap;
  int64_t lanes;
  float* sums;
  bool add;
};
struct DepthwiseKernels {
  void (*product[kMostPixels])(const DepthwiseProduct&);  // by pixels at a time - 1, at most the columns
  void (*outer[kMostTaps])(const DepthwiseOuter&);        // by taps - 1
};

// For grouped convolutions with as many outputs as channels in a group. Vectors are of outputs in products,
// of channels in outer products; a vector is of one group, or of several with 2, 4 or 8 lanes each.
inline constexpr int kMostGroupedPixels = 14, kMostGroupedTaps = 5;

// Lines that are fetched for every result of a panel, if so many taps are taken together: at stride 2, where
// none are, its panel sees four other pixels.
constexpr int64_t grouped_lines(int64_t taps, int64_t elements) { return taps > 1 ? 1 : 4 / elements; }

struct GroupedTaps {
  const int64_t *in, *weights;  // cells, from a pixel's and from a panel's
  int64_t count, depth;         // depth: cells of a group
};
// Vectors of outputs, side by side in the results, each with so many cells of weights. `shared` of them read
// the same group or groups, and the next ones what is in_step cells further.
struct GroupedPanels {
  int64_t count, weights, shared, in_step;
};
// to[row][column][panel][lane] = sum over taps and k of
//   in[row][column][taps.in[t] + k-th cell of the lane's group] weights[panel][taps.weights[t] + k][lane].
// Vectors are read from `in` if they are of several groups.
struct GroupedProduct {
  const Cell* in;
  int64_t in_row, in_step;
  GroupedTaps taps;
  const Cell* weights;
  GroupedPanels panels;
  void* to;                 // results of the cells' own type, or sums in f32
  bool results;             // which
  bool past_caches;         // how results are written, which must then be aligned to vectors
  int64_t to_row, to_step;  // elements
  int64_t rows, columns;
  int64_t next;                 // cells from what is read to what is prefetched for soon after
  const char* fetch = nullptr;  // from where grouped_lines() are fetched
};
// sums[t][k][lane] = (add ? itself : 0)
//   + sum over pixels of x[pixel + tap[t] + lane] y[pixel + the k-th of the lane's group]
struct GroupedOuter {
  const Cell *x, *y;
  Pixels x_at, y_at;  // which differ in their steps
  const int64_t* tap;
  float* sums;
  int64_t sums_step;  // floats from one tap to the next
  bool add;
  const char* fetch = nullptr;  // where twice as many lines as there are pixels are fetched
};
struct GroupedRow {
  int pixels;   // that `product` takes at most
  int outputs;  // that `outer` takes at once: all of a group, or part of a whole vector; 0: no kernels
  int taps;     // that it takes at most
  // By so many taps - 1 that are in_step apart, with weights side by side, as in a row of 3x3 at stride 1;
  // and by pixels at a time - 1, at most the columns.
  void (*product[3][kMostGroupedPixels])(const GroupedProduct&);
  void (*outer[kMostGroupedTaps])(const GroupedOuter&);  // by taps - 1
};
struct GroupedKernels {
  DType type;                                   // of results: f32 or, for pairs, bf16
  GroupedRow of_two, of_four, of_eight, whole;  // by lanes of a group; whole: vectors are of one group
  const GroupedRow& of(int64_t lanes, int64_t width) const {
    return lanes >= width ? whole : lanes == 2 ? of_two : lanes == 4 ? of_four : of_eight;
  }
};

// For l < width, where out[i] is not null:
// out[i][from + l] <- act(sums[i][l] + bias[l]) + beta out[i][from + l]
struct TileFinish {
  void* const* out;
  const float* sums;
  const float* bias;  // may be null
  int64_t rows, sums_step, from, width;
  float beta;
  bool relu;
};

// A map [N,H,W,C] seen as tiles that begin `side` pixels apart, the first `padding` before the map.
struct WinogradMap {
  void *images, *zeros;  // zeros: C elements, what lies outside
  int64_t H, W, C, padding;
  int64_t high, wide;  // tiles
  int64_t per_image() const { return high * wide; }
};
// The positions of transformed tiles: `plane` floats from one position to the next, `tile` from one tile.
struct WinogradPlanes {
  float* at;
  int64_t plane, tile;
};
struct WinogradEnd {
  const float* bias;  // may be null
  float beta;
  bool relu;
  float* sums =
      nullptr;  // [C], then [C]: results, before they are rounded, and their squares are added; may be null
};
// The passes over `count` tiles from `first` on, by element(); and those over filters. A tile of the result
// has side x side pixels; transformed, tiles and filters have `positions` floats a channel.
struct WinogradKernels {
  int side, positions;
  void (*input[3])(const WinogradMap&, int64_t first, int64_t count, const WinogradPlanes& to);
  void (*output[3])(const WinogradMap&, int64_t first, int64_t count, const WinogradPlanes& from,
                    const WinogradEnd&);
  // The transpose of output's; to [panel][tile][lanes] in each plane.
  void (*spread[3])(const WinogradMap&, int64_t first, int64_t count, const WinogradPlanes& to,
                    int64_t lanes);
  // n filters whose taps are `step` floats apart, rotated by 180 degrees if wanted.
  void (*filters)(const float* taps, int64_t step, int64_t n, bool rotated, const WinogradPlanes& to);
  // to [9][n] <- the transpose of `filters`.
  void (*gather)(const WinogradPlanes& from, int64_t n, float* to);
};

// Packs pixels into slots of cells: to[g * group + w * slot + i] = element first[g] + i of pixel a[w * step]
// and, in pairs, of b[w * step]; 0 beyond the last channel.
struct PackRow {
  Cell* to;
  int64_t group, slot, groups, columns, channels;
  const int64_t* first;
  const void *const *a, *const *b;
  int64_t step = 1;
};

struct Kernels {
  int width;            // floats in a vector
  NormKernels norm[3];  // by element()
  PoolKernels pool[3];
  // to [columns][lanes] = from [rows][columns] transposed, 0 beyond its rows; lanes are a multiple
  // of the width.
  void (*transpose)(Cell* to, int64_t lanes, const Cell* from, int64_t rows, int64_t columns);
  TileKernels tiles;       // of f32
  TileKernels slim_tiles;  // for few lanes
  DepthwiseKernels depthwise;
  GroupedKernels grouped;  // of f32
  void (*finish[3])(const TileFinish&);
  void (*pack[3])(const PackRow&);  // as f32, by element()
  void (*pack_pairs)(const PackRow&);
  void (*pair)(Cell* to, const bf16* a, const bf16* b, int64_t n);  // to[i] = (a[i], b[i])
  void (*blend[3])(void* y, const void* x, float beta, int64_t n);  // y <- x + beta y, by element()
  WinogradKernels winograd, winograd_wide;                          // F(2x2, 3x3) and F(4x4, 3x3)
};
inline constexpr int kMostPositions = 36;
const Kernels& kernels();  // those of chosen_isa()

// What stands for bf16 in place of others where the processor rounds to it.
struct RoundingKernels {
  NormKernels norm;
  PoolKernels pool;
  void (*finish)(const TileFinish&);
  void (*blend)(void* y, const void* x, float beta, int64_t n);
};

// Tiles of two bf16 a cell; null where the processor does not multiply bf16.
struct PairKernels {
  TileKernels tiles, slim_tiles;
  GroupedKernels grouped;
};
const PairKernels* pair_kernels();

// sums[i][row][lane] = (add ? itself : 0) + sum over k < depth of a[i][row][k] b[k][lane], for 16 rows of
// each of `operands` matrices a and 16 or 32 lanes. Steps are in cells.
struct AmxOuter {
  const void* a[2];  // cells at any even address
  const Cell* b;
  int64_t operands, lanes, depth, a_step, b_step;  // depth: a multiple of 16
  float* sums[2];
  int64_t sums_step;
  bool add;
};
// Tiles in registers of 16 rows of 16 cells. Their depth is a multiple of 8. A thread that has used tiles or
// `outer` calls complete(), if it used tiles, and then release(), before other code uses such registers.
struct AmxKernels {
  TileKernels tiles, slim_tiles;  // which have no `outer`
  void (*outer)(const AmxOuter&);
  void (*release)();
};
const AmxKernels* amx_kernels();  // null where the processor has none

}  // namespace skein::cpu
