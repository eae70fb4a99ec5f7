// Winograd forward and data gradient: blocks of tiles, transformed, multiplied 16 times, transformed back.
#include "engine/cpu/winograd.h"

#include "engine/cpu/tile.h"
#include "engine/cpu/window.h"
#include "engine/cpu/winograd_tile.h"

namespace skein::cpu {

namespace {

constexpr int64_t kBlockFloats = 96 << 10;  // in transformed tiles: most of a second-level cache
constexpr int64_t kSkew = 16;               // floats between planes, so that the 16 do not share a cache set

int64_t panels(int64_t n) { return (n + kLanes - 1) / kLanes; }

// Both passes compute `out` <- act(3x3 correlation of `in` + bias) + beta out.
struct Job {
  Tensor in, out, weights;  // weights: [16][panel of outputs][depth][16]
  int64_t padding;
  Tensor bias;
  float beta = 0;
  bool relu = false;
};

// U for one filter position of 16 outputs from get(r, s, lane).
template <class Get>
void put_filter(float* to, int64_t plane, Get get) {
  for (int half = 0; half < kLanes; half += 8) {
    V8 g[3][3];
    for (int r = 0; r < 3; ++r)
      for (int s = 0; s < 3; ++s)
        for (int l = 0; l < 8; ++l) g[r][s][l] = get(r, s, half + l);
    Tile u;
    transform_filter(g, u);
    for (int i = 0; i < 16; ++i) store8(to + i * plane + half, u[i / 4][i % 4]);
  }
}

// at(lane, row, r, s): the filter of one of `lanes` columns and one of `rows` rows, transformed and laid in
// panels of kLanes columns.
template <class At>
Tensor transformed_filters(int64_t lanes, int64_t rows, At at) {
  const int64_t plane = panels(lanes) * rows * kLanes;
  const Tensor packed({16 * plane});
#pragma omp parallel for schedule(static) if (rows * lanes > 1 << 10)
  for (int64_t j = 0; j < panels(lanes); ++j)
    for (int64_t row = 0; row < rows; ++row)
      put_filter(packed.data<float>() + (j * rows + row) * kLanes, plane, [&](int r, int s, int l) {
        const int64_t lane = j * kLanes + l;
        return lane < lanes ? at(lane, row, r, s) : 0.f;
      });
  return packed;
}

Tensor forward_weights(const ConvArgs& c) {
  const int64_t O = c.w.dim(0), C = c.w.dim(3);
  return transformed_filters(O, C, [w = c.w.data<float>(), C](int64_t o, int64_t i, int r, int s) {
    return w[((o * 3 + r) * 3 + s) * C + i];
  });
}

// The filters rotated by 180 degrees, with inputs and outputs exchanged.
Tensor data_weights(const ConvArgs& c) {
  const int64_t O = c.w.dim(0), C = c.w.dim(3);
  return transformed_filters(C, O, [w = c.w.data<float>(), C](int64_t i, int64_t o, int r, int s) {
    return w[((o * 3 + 2 - r) * 3 + 2 - s) * C + i];
  });
}

template <class T>
void transform_in(const Job& job, int64_t first, int64_t count, float* v, int64_t plane) {
  const int64_t H = job.in.dim(1), W = job.in.dim(2), C = job.in.dim(3);
  const Tiling tiles(job.out.dim(1), job.out.dim(2));
  thread_local std::vector<T> zeros;
  if (int64_t(zeros.size()) < C) zeros.assign(size_t(C), T(0.f));
  for (int64_t k = 0; k < count; ++k, v += C) {
    const int64_t n = (first + k) / tiles.per_image(), at = (first + k) % tiles.per_image();
    T* from[4][4];
    pixels_at(job.in.data<T>() + n * H * W * C, H, W, C, at / tiles.wide * 2 - job.padding,
              at % tiles.wide * 2 - job.padding, zeros.data(), from);
    for (int64_t c = 0; c < C; c += 8) {
      Tile d;
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) d[i / 4][i % 4] = load8(from[i / 4][i % 4] + c);
      transform_input(d);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) store8(v + i * plane + c, d[i / 4][i % 4]);
    }
  }
}

// m[tile][output] = sum over depth of v[tile][depth] u, one of the 16 positions.
void multiply(const float* v, const float* u, float* m, int64_t count, int64_t depth, int64_t outputs) {
  const Groups groups{count};
  const int64_t none = 0;
  for (int64_t j = 0; j < panels(outputs); ++j)
    for (int64_t g = 0; g < groups.count; ++g)
      with_rows(groups.size(g), [&](auto rows) {
        const float* in[rows];
        V8 sum[rows][2];
        for (int i = 0; i < rows; ++i)
          in[i] = v + (groups.first(g) + i) * depth, sum[i][0] = sum[i][1] = V8{};
        dot_tile<rows>(in, &none, 1, depth, u + j * depth * kLanes, sum);
        float* to = m + groups.first(g) * panels(outputs) * kLanes + j * kLanes;
        for (int i = 0; i < rows; ++i, to += panels(outputs) * kLanes)
          store8(to, sum[i][0]), store8(to + 8, sum[i][1]);
      });
}

template <class T>
void transform_out(const Job& job, int64_t first, int64_t count, const float* m, int64_t plane) {
  const int64_t P = job.out.dim(1), Q = job.out.dim(2), O = job.out.dim(3);
  const Tiling tiles(P, Q);
  const float* bias = job.bias ? job.bias.data<float>() : nullptr;
  const float beta = job.beta;
  for (int64_t k = 0; k < count; ++k, m += panels(O) * kLanes) {
    const int64_t n = (first + k) / tiles.per_image(), at = (first + k) % tiles.per_image();
    T* to[2][2];
    pixels_at(job.out.data<T>() + n * P * Q * O, P, Q, O, at / tiles.wide * 2, at % tiles.wide * 2,
              static_cast<T*>(nullptr), to);
    for (int64_t o = 0; o < O; o += 8) {
      Tile t;
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) t[i / 4][i % 4] = load8(m + i * plane + o);
      V8 y[2][2];
      transform_output(t, y);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        T* p = to[i / 2][i % 2];
        if (!p) continue;
        V8 x = y[i / 2][i % 2];
        if (bias) x += load8(bias + o);
        if (job.relu) x = x < V8{} ? V8{} : x;
        if (beta != 0) x += beta * load8(p + o);
        store8(p + o, x);
      }
    }
  }
}

template <class T>
void run(const Job& job) {
  const int64_t C = job.in.dim(3), O = job.out.dim(3), u = panels(O) * C * kLanes;
  const Tiling tiles(job.out.dim(1), job.out.dim(2));
  const int64_t all = tiles.per_image() * job.out.dim(0);
  const int64_t most = std::clamp<int64_t>(kBlockFloats / (16 * (C + O)), 48, 96);
#pragma omp parallel for schedule(dynamic)
  for (int64_t first = 0; first < all; first += most) {
    thread_local std::vector<float> inputs, products;
    const int64_t count = std::min(most, all - first);
    const int64_t v_plane = most * C + kSkew, m_plane = most * panels(O) * kLanes + kSkew;
    float *v = grow(inputs, 16 * v_plane), *m = grow(products, 16 * m_plane);
    transform_in<T>(job, first, count, v, v_plane);
    for (int i = 0; i < 16; ++i)
      multiply(v + i * v_plane, job.weights.data<float>() + i * u, m + i * m_plane, count, C, O);
    transform_out<T>(job, first, count, m, m_plane);
  }
}

}  // namespace

bool winograd_fits(const ConvArgs& c) {
  const auto& g = c.geometry;
  return c.w.dim(1) == 3 && c.w.dim(2) == 3 && g.stride == 1 && g.dilation == 1 && g.groups == 1 &&
         g.padding <= 2 && c.w.dim(3) % 8 == 0 && c.w.dim(0) % 8 == 0;
}

void winograd_forward(const ConvArgs& c) {
  const Job job{c.x, c.y, forward_weights(c), c.geometry.padding, c.bias, 0, c.relu};
  visit_float(c.x.dtype(), [&](auto zero) { run<decltype(zero)>(job); });
}

void winograd_backward_data(const ConvArgs& c) {
  const Job job{c.y, c.x, data_weights(c), 2 - c.geometry.padding, {}, c.beta, false};
  visit_float(c.x.dtype(), [&](auto zero) { run<decltype(zero)>(job); });
}

}  // namespace skein::cpu
