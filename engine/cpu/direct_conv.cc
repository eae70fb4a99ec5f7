// Forward and data-gradient convolutions: every sum is a product of an image window with packed weights.
#include "engine/cpu/direct_conv.h"

#include "engine/cpu/tile.h"
#include "engine/cpu/window.h"

namespace skein::cpu {

namespace {

constexpr int64_t kWindowFloats = 40 << 10;  // in a block's window: 160 kB, a third of a second-level cache
constexpr int64_t kLeastPixels = 48, kMostPixels = 256;  // fewer would read the weights too often
constexpr int64_t kWeightsInCache = 5 << 10;             // floats: 20 of 32 kB
constexpr int64_t kDepth = 256;                          // in one pass over a panel of 1x1 weights: 16 kB

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
int64_t panels(int64_t n) { return (n + kLanes - 1) / kLanes; }

// How many rows of an image are worked on at once: few enough that their window stays in cache.
int64_t rows_at_once(int64_t rows, int64_t columns, int64_t floats_per_pixel) {
  const int64_t pixels =
      std::clamp(kWindowFloats / std::max<int64_t>(floats_per_pixel, 1), kLeastPixels, kMostPixels);
  const int64_t most = std::clamp<int64_t>((pixels + columns / 2) / columns, 1, rows);
  const int64_t blocks = (rows + most - 1) / most;
  return (rows + blocks - 1) / blocks;
}

// One product: out[i] <- act(sum over taps and depth of in[i] * weights + bias) + beta out[i].
template <class T>
struct Product {
  std::vector<const float*> in;
  std::vector<T*> out;
  std::vector<int64_t> taps;
  int64_t depth, outputs;
  const float* weights;  // [panel][tap][depth][16]
  const float* bias;     // may be null
  float beta;
  bool relu;
};

template <class T, int M>
inline void finish(const Product<T>& p, T* const* out, int64_t from, const V8 (&sum)[M][2]) {
  const int64_t width = std::min<int64_t>(kLanes, p.outputs - from);
  const float* const bias = p.bias ? p.bias + from : nullptr;  // locals: stores may alias members
  const float beta = p.beta;
  const bool plain = !bias && !p.relu && beta == 0, relu = p.relu;
  for (int i = 0; i < M; ++i) {
    T* y = out[i] + from;
    if (width < kLanes) {
      for (int64_t l = 0; l < width; ++l) {
        float v = sum[i][l / 8][l % 8] + (bias ? bias[l] : 0.f);
        if (relu) v = v < 0 ? 0.f : v;
        y[l] = T(beta == 0 ? v : v + beta * float(y[l]));
      }
      continue;
    }
    for (int j = 0; j < 16; j += 8) {
      V8 v = sum[i][j / 8];
      if (!plain) {
        if (bias) v += load8(bias + j);
        if (relu) v = v < V8{} ? V8{} : v;
        if (beta != 0) v += beta * load8(y + j);
      }
      store8(y + j, v);
    }
  }
}

// Sums of one group of pixels by one panel of outputs; over `depth` of the products from `from` on.
template <class T>
inline void multiply(const Product<T>& p, const Groups& groups, int64_t g, int64_t j, int64_t from,
                     int64_t depth, float* partial) {
  with_rows(groups.size(g), [&](auto m) {
    const int64_t taps = int64_t(p.taps.size()), first = groups.first(g),
                  at = taps == 1 ? p.taps[0] + from : 0;
    const float* b = p.weights + (j * taps * p.depth + from) * kLanes;
    float* to = partial + first * kLanes;
    for (int i = 0; i < m; ++i) __builtin_prefetch(p.out[size_t(first + i)] + j * kLanes, 1);
    V8 sum[m][2];
    for (int i = 0; i < m; ++i)
      for (int h = 0; h < 2; ++h) sum[i][h] = from ? load8(to + i * kLanes + h * 8) : V8{};
    dot_tile<m>(p.in.data() + first, taps == 1 ? &at : p.taps.data(), taps, depth, b, sum);
    if (from + depth >= p.depth) return finish<T, m>(p, p.out.data() + first, j * kLanes, sum);
    for (int i = 0; i < m; ++i)
      for (int h = 0; h < 2; ++h) store8(to + i * kLanes + h * 8, sum[i][h]);
  });
}

template <class T>
void run(const Product<T>& p) {
  const Groups groups{int64_t(p.in.size())};
  const int64_t taps = int64_t(p.taps.size()), all = panels(p.outputs);
  if (taps * p.depth * all <= kWeightsInCache / kLanes) {  // all weights stay in the first-level cache
    for (int64_t g = 0; g < groups.count; ++g)
      for (int64_t j = 0; j < all; ++j) multiply(p, groups, g, j, 0, p.depth, nullptr);
    return;
  }
  const int64_t depth = taps == 1 && p.depth > kDepth + kDepth / 2 ? kDepth : p.depth;
  thread_local std::vector<float> memory;
  float* partial = grow(memory, groups.n * kLanes);
  for (int64_t j = 0; j < all; ++j)
    for (int64_t from = 0; from < p.depth; from += depth)
      for (int64_t g = 0; g < groups.count; ++g)
        multiply(p, groups, g, j, from, std::min(depth, p.depth - from), partial);
}

// Few channels make short inner loops: then a window's row of S x C floats is one run.
bool merged(const ConvArgs& c) { return c.x.dim(3) < 8 && c.geometry.dilation == 1; }

// [O][K] -> [panel][K][16].
Tensor pack_forward(const ConvArgs& c) {
  const int64_t O = c.w.dim(0), K = c.w.size() / O;
  const Tensor packed({panels(O) * K * kLanes});
  const float* w = c.w.data<float>();
  float* to = packed.data<float>();
#pragma omp parallel for schedule(static) if (O * K > 1 << 14)
  for (int64_t j = 0; j < panels(O); ++j) {
    const int64_t width = std::min<int64_t>(kLanes, O - j * kLanes);
    float* t = to + j * K * kLanes;
    for (int64_t from = 0; from < K;
         from += kLanes)  // in squares: rows a power of two apart share cache sets
      for (int64_t l = 0; l < kLanes; ++l)
        for (int64_t k = from; k < std::min(from + kLanes, K); ++k)
          t[k * kLanes + l] = l < width ? w[(j * kLanes + l) * K + k] : 0.f;
  }
  return packed;
}

template <class T>
void forward_rows(const ConvArgs& c, const float* packed, int64_t n, int64_t first, int64_t last) {
  const auto& g = c.geometry;
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3), R = c.w.dim(1), S = c.w.dim(2);
  const int64_t P = c.y.dim(1), Q = c.y.dim(2), O = c.y.dim(3);
  const Rectangle r{first * g.stride - g.padding,
                    (last - 1) * g.stride - g.padding + (R - 1) * g.dilation + 1, -g.padding,
                    (Q - 1) * g.stride - g.padding + (S - 1) * g.dilation + 1};
  thread_local std::vector<float> memory;
  const Window x = window_of(memory, c.x.data<T>() + n * H * W * C, H, W, C, r);
  thread_local Product<T> p;
  p.in.clear(), p.out.clear(), p.taps.clear();
  for (int64_t i = first; i < last; ++i)
    for (int64_t q = 0; q < Q; ++q) {
      p.in.push_back(x.at + (i - first) * g.stride * x.row + q * g.stride * C);
      p.out.push_back(c.y.data<T>() + ((n * P + i) * Q + q) * O);
    }
  for (int64_t i = 0; i < R; ++i)
    for (int64_t s = 0; s < (merged(c) ? 1 : S); ++s)
      p.taps.push_back(i * g.dilation * x.row + s * g.dilation * C);
  p.depth = merged(c) ? S * C : C, p.outputs = O, p.weights = packed;
  p.bias = c.bias ? c.bias.data<float>() : nullptr, p.beta = 0, p.relu = c.relu;
  run(p);
}

// Pixels of the input whose (position + padding) mod stride is (h, w): they see the same taps of the window.
struct Class {
  int64_t h, w;
  std::vector<std::array<int64_t, 2>> taps;
  int64_t at;  // of its weights in the packed buffer
};

std::vector<Class> classes_of(const ConvArgs& c) {
  const auto& g = c.geometry;
  std::vector<Class> all;
  int64_t at = 0;
  for (int64_t h = 0; h < g.stride; ++h)
    for (int64_t w = 0; w < g.stride; ++w) {
      Class k{h, w, {}, at};
      for (int64_t r = 0; r < c.w.dim(1); ++r)
        for (int64_t s = 0; s < c.w.dim(2); ++s)
          if (r * g.dilation % g.stride == h && s * g.dilation % g.stride == w) k.taps.push_back({r, s});
      at += panels(c.x.dim(3)) * int64_t(k.taps.size()) * c.w.dim(0) * kLanes;
      all.push_back(std::move(k));
    }
  return all;
}

// [O][R][S][C] -> for each class [panel of C][tap][O][16].
Tensor pack_data(const ConvArgs& c, const std::vector<Class>& classes) {
  const int64_t O = c.w.dim(0), S = c.w.dim(2), C = c.w.dim(3);
  const Tensor packed({panels(C) * kLanes * c.w.size() / C});
  const float* w = c.w.data<float>();
#pragma omp parallel for schedule(static) if (c.w.size() > 1 << 14)
  for (int64_t j = 0; j < panels(C); ++j)
    for (const Class& k : classes) {
      const int64_t count = int64_t(k.taps.size()), width = std::min<int64_t>(kLanes, C - j * kLanes);
      float* to = packed.data<float>() + k.at + j * count * O * kLanes;
      for (auto [r, s] : k.taps)
        for (int64_t o = 0; o < O; ++o, to += kLanes) {
          const float* from = w + ((o * c.w.dim(1) + r) * S + s) * C + j * kLanes;
          for (int64_t l = 0; l < kLanes; ++l) to[l] = l < width ? from[l] : 0.f;
        }
    }
  return packed;
}

template <class T>
void data_rows(const ConvArgs& c, const std::vector<Class>& classes, const float* packed, int64_t n,
               int64_t first, int64_t last) {
  const auto& g = c.geometry;
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3), R = c.w.dim(1), S = c.w.dim(2);
  const int64_t P = c.y.dim(1), Q = c.y.dim(2), O = c.y.dim(3), s = g.stride;
  const Rectangle r{floor_div(first + g.padding - (R - 1) * g.dilation, s), (last - 1 + g.padding) / s + 1,
                    floor_div(g.padding - (S - 1) * g.dilation, s), (W - 1 + g.padding) / s + 1};
  thread_local std::vector<float> memory;
  const Window y = window_of(memory, c.y.data<T>() + n * P * Q * O, P, Q, O, r);
  thread_local Product<T> p;
  for (const Class& k : classes) {
    p.in.clear(), p.out.clear(), p.taps.clear();
    for (int64_t h = first; h < last; ++h)
      for (int64_t w = 0; w < W; ++w)
        if ((h + g.padding) % s == k.h && (w + g.padding) % s == k.w) {
          p.in.push_back(y.at + ((h + g.padding) / s - r.top) * y.row + ((w + g.padding) / s - r.left) * O);
          p.out.push_back(c.x.data<T>() + ((n * H + h) * W + w) * C);
        }
    for (auto [i, j] : k.taps) p.taps.push_back(-(i * g.dilation / s) * y.row - (j * g.dilation / s) * O);
    p.depth = O, p.outputs = C, p.weights = packed + k.at, p.bias = nullptr, p.beta = c.beta, p.relu = false;
    run(p);
  }
}

}  // namespace

void direct_forward(const ConvArgs& c) {
  const Tensor packed = pack_forward(c);
  const int64_t N = c.y.dim(0), P = c.y.dim(1);
  const int64_t seen = std::min<int64_t>(c.geometry.stride, c.w.dim(1));
  const int64_t rows = rows_at_once(P, c.y.dim(2), c.x.dim(3) * seen * seen);
  const int64_t blocks = (P + rows - 1) / rows;
  visit_float(c.x.dtype(), [&](auto zero) {
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < N * blocks; ++i) {
      const int64_t first = i % blocks * rows;
      forward_rows<decltype(zero)>(c, packed.data<float>(), i / blocks, first, std::min(first + rows, P));
    }
  });
}

void direct_backward_data(const ConvArgs& c) {
  const std::vector<Class> classes = classes_of(c);
  const Tensor packed = pack_data(c, classes);
  const int64_t N = c.x.dim(0), H = c.x.dim(1), s = c.geometry.stride;
  int64_t rows = rows_at_once(H, c.x.dim(2), std::max<int64_t>(1, c.y.dim(3) / (s * s)));
  rows = (rows + s - 1) / s * s;
  const int64_t blocks = (H + rows - 1) / rows;
  visit_float(c.x.dtype(), [&](auto zero) {
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < N * blocks; ++i) {
      const int64_t first = i % blocks * rows;
      data_rows<decltype(zero)>(c, classes, packed.data<float>(), i / blocks, first,
                                std::min(first + rows, H));
    }
  });
}

}  // namespace skein::cpu
