// Winograd weight gradients: dU = sum over tiles of V x (A dy A'), 16 outer products; then G' dU G.
#include <omp.h>

#include "engine/cpu/tile.h"
#include "engine/cpu/window.h"
#include "engine/cpu/winograd.h"
#include "engine/cpu/winograd_tile.h"

namespace skein::cpu {

namespace {

constexpr int64_t kSlot = 8;  // floats of a tile in a group of up to kRows channels
constexpr int64_t kSkew = 16;

// How dU is cut: 16 planes of [panel of outputs][group of channels] tiles of kRows x kLanes.
struct Cut {
  int64_t panels, groups;
  int64_t plane() const { return panels * groups * kRows * kLanes; }
};

struct Operands {
  std::vector<float> x, dy;  // [16][group][tile][kSlot], [16][panel][tile][16]
  int64_t x_plane = 0, dy_plane = 0;
};

template <class T>
void transform_x(const ConvArgs& c, int64_t first, int64_t count, float* to, int64_t plane) {
  const int64_t H = c.x.dim(1), W = c.x.dim(2), C = c.x.dim(3);
  const Tiling tiles(c.y.dim(1), c.y.dim(2));
  const Groups groups{C};
  thread_local std::vector<T> zeros;
  if (int64_t(zeros.size()) < C) zeros.assign(size_t(C), T(0.f));
  thread_local std::vector<float> memory;
  float* row = grow(memory, 16 * (C + kSlot));
  for (int64_t k = 0; k < count; ++k) {
    const int64_t n = (first + k) / tiles.per_image(), at = (first + k) % tiles.per_image();
    T* from[4][4];
    pixels_at(c.x.data<T>() + n * H * W * C, H, W, C, at / tiles.wide * 2 - c.geometry.padding,
              at % tiles.wide * 2 - c.geometry.padding, zeros.data(), from);
    for (int64_t i = 0; i < C; i += 8) {
      Tile d;
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) d[j / 4][j % 4] = load8(from[j / 4][j % 4] + i);
      transform_input(d);
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) store8(row + j * (C + kSlot) + i, d[j / 4][j % 4]);
    }
    for (int j = 0; j < 16; ++j)
      for (int64_t g = 0; g < groups.count; ++g)
        store8(to + j * plane + (g * count + k) * kSlot, load8(row + j * (C + kSlot) + groups.first(g)));
  }
}

template <class T>
void spread_y(const ConvArgs& c, int64_t first, int64_t count, float* to, int64_t plane) {
  const int64_t P = c.y.dim(1), Q = c.y.dim(2), O = c.y.dim(3);
  const Tiling tiles(P, Q);
  thread_local std::vector<T> zeros;
  if (int64_t(zeros.size()) < O) zeros.assign(size_t(O), T(0.f));
  for (int64_t k = 0; k < count; ++k) {
    const int64_t n = (first + k) / tiles.per_image(), at = (first + k) % tiles.per_image();
    T* from[2][2];
    pixels_at(c.y.data<T>() + n * P * Q * O, P, Q, O, at / tiles.wide * 2, at % tiles.wide * 2, zeros.data(),
              from);
    for (int64_t o = 0; o < O; o += 8) {
      const V8 y[2][2] = {{load8(from[0][0] + o), load8(from[0][1] + o)},
                          {load8(from[1][0] + o), load8(from[1][1] + o)}};
      Tile m;
      spread_output(y, m);
      float* t = to + (o / kLanes * count + k) * kLanes + o % kLanes;
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) store8(t + j * plane, m[j / 4][j % 4]);
    }
  }
}

template <class T>
void add_block(const ConvArgs& c, const Cut& cut, int64_t first, int64_t count, float* sum, bool add) {
  thread_local Operands at;
  const int64_t x_plane = cut.groups * count * kSlot + kSkew, dy_plane = cut.panels * count * kLanes + kSkew;
  float *x = grow(at.x, 16 * x_plane), *dy = grow(at.dy, 16 * dy_plane);
  transform_x<T>(c, first, count, x, x_plane);
  spread_y<T>(c, first, count, dy, dy_plane);
  const Groups groups{c.x.dim(3)};
  const Pixels pixels{1, 1, count, 0, 0, kSlot};
  for (int i = 0; i < 16; ++i)
    for (int64_t j = 0; j < cut.panels; ++j)
      for (int64_t g = 0; g < cut.groups; ++g, sum += kRows * kLanes)
        with_rows(groups.size(g), [&](auto m) {
          outer_tile<m>(x + i * x_plane + g * count * kSlot, dy + i * dy_plane + j * count * kLanes, pixels,
                        sum, add);
        });
}

// dw <- beta dw + G' (the threads' sums, in the order of threads) G.
void gather(const ConvArgs& c, const Cut& cut, const float* sums, int64_t threads) {
  const int64_t O = c.w.dim(0), C = c.w.dim(3);
  const Groups groups{C};
  float* dw = c.w.data<float>();
#pragma omp parallel for schedule(static) if (C * O > 1 << 10)
  for (int64_t j = 0; j < cut.panels; ++j)
    for (int64_t i = 0; i < C; ++i) {
      const int64_t g = groups.of(i);
      const float* at = sums + ((j * cut.groups + g) * kRows + i - groups.first(g)) * kLanes;
      for (int64_t o = j * kLanes; o < std::min(O, (j + 1) * kLanes); o += 8, at += 8) {
        Tile u;
        for (int p = 0; p < 16; ++p) {
          u[p / 4][p % 4] = load8(at + p * cut.plane());
          for (int64_t t = 1; t < threads; ++t) u[p / 4][p % 4] += load8(at + (t * 16 + p) * cut.plane());
        }
        V8 d[3][3];
        gather_filter(u, d);
        for (int p = 0; p < 9; ++p)
          for (int l = 0; l < 8; ++l) {
            float& y = dw[((o + l) * 9 + p) * C + i];
            y = c.beta == 0 ? d[p / 3][p % 3][l] : d[p / 3][p % 3][l] + c.beta * y;
          }
      }
    }
}

// Sums of dy over pixels, in double: a bias's gradient.
template <class T>
void bias_gradient(const ConvArgs& c) {
  const int64_t O = c.y.dim(3), rows = c.y.size() / O;
  const T* dy = c.y.data<T>();
  std::vector<double> sum(static_cast<size_t>(O));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t o = 0; o < O; ++o) sum[size_t(o)] += double(float(dy[i * O + o]));
  float* db = c.bias.data<float>();
  for (int64_t o = 0; o < O; ++o) db[o] = float(sum[size_t(o)]) + (c.beta == 0 ? 0.f : c.beta * db[o]);
}

}  // namespace

void winograd_backward_weights(const ConvArgs& c) {
  const int64_t C = c.x.dim(3), O = c.y.dim(3);
  const Cut cut{(O + kLanes - 1) / kLanes, Groups{C}.count};
  const Tiling tiles(c.y.dim(1), c.y.dim(2));
  const int64_t all = tiles.per_image() * c.y.dim(0),
                most = std::clamp<int64_t>((96 << 10) / (16 * (C + O)), 48, 96);
  const int64_t blocks = (all + most - 1) / most, threads = std::min<int64_t>(omp_get_max_threads(), blocks);
  const Tensor sums({threads * 16 * cut.plane()});
  visit_float(c.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
#pragma omp parallel for schedule(static, 1) num_threads(int(threads))
    for (int64_t t = 0; t < threads; ++t)
      for (int64_t from = blocks * t / threads, i = from; i < blocks * (t + 1) / threads; ++i)
        add_block<T>(c, cut, i * most, std::min(most, all - i * most),
                     sums.data<float>() + t * 16 * cut.plane(), i > from);
    if (c.bias) bias_gradient<T>(c);
  });
  gather(c, cut, sums.data<float>(), threads);
}

}  // namespace skein::cpu
