// Separable resampling: each output row is a weighted sum of source rows, then of that row's pixels.
#include "data/pictures/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace skein::data {
namespace {

using Four = float __attribute__((vector_size(16)));

// For each output position, `most` weights (zeros after the last) and the first source
// position they apply to.
struct Taps {
  std::vector<int> first, count;
  std::vector<float> weight;
  int most = 0;

  void set(int size, double from, double length, int n) {
    const double scale = length / n, reach = std::max(scale, 1.0);
    most = int(std::ceil(reach)) * 2 + 1;
    first.resize(size_t(n)), count.resize(size_t(n)), weight.assign(size_t(n) * size_t(most), 0.f);
    for (int i = 0; i < n; ++i) {
      const double center = from + (i + 0.5) * scale;
      const int lo = std::clamp(int(center - reach + 0.5), 0, size - 1);
      const int hi = std::clamp(int(center + reach + 0.5), lo + 1, size);
      double sum = 0;
      for (int p = lo; p < hi; ++p) sum += triangle(p, center, reach);
      for (int p = lo; p < hi; ++p)
        weight[size_t(i) * size_t(most) + size_t(p - lo)] =
            sum > 0 ? float(triangle(p, center, reach) / sum) : 1.f / float(hi - lo);
      first[size_t(i)] = lo, count[size_t(i)] = hi - lo;
    }
  }
  static double triangle(int p, double center, double reach) {
    return std::max(0.0, 1 - std::abs((p + 0.5 - center) / reach));
  }
};

void sum_rows(const uint8_t* rows, int64_t stride, const float* weight, int count, int n, float* sum) {
  for (int i = 0; i < n; ++i) sum[i] = weight[0] * float(rows[i]);
  int k = 1;
  for (; k + 1 < count; k += 2) {
    const uint8_t *a = rows + k * stride, *b = a + stride;
    const float wa = weight[k], wb = weight[k + 1];
    for (int i = 0; i < n; ++i) sum[i] += wa * float(a[i]) + wb * float(b[i]);
  }
  for (; k < count; ++k) {
    const uint8_t* a = rows + k * stride;
    for (int i = 0; i < n; ++i) sum[i] += weight[k] * float(a[i]);
  }
}

// Three channels in four lanes. The fourth lane reads the next pixel, so `row` must be one float longer.
void sum_columns_rgb(const float* row, const Taps& taps, int n, bool mirror, uint8_t* to) {
  for (int x = 0; x < n; ++x) {
    const float* weight = &taps.weight[size_t(x) * size_t(taps.most)];
    const float* p = row + int64_t(taps.first[size_t(x)]) * 3;
    Four sum{0.5f, 0.5f, 0.5f, 0.5f};
    for (int k = 0; k < taps.count[size_t(x)]; ++k, p += 3) {
      Four pixel;
      std::memcpy(&pixel, p, sizeof pixel);
      sum += weight[k] * pixel;
    }
    uint8_t* q = to + int64_t(mirror ? n - 1 - x : x) * 3;
    for (int c = 0; c < 3; ++c) q[c] = uint8_t(int(sum[c]));
  }
}

void sum_columns(const float* row, const Taps& taps, int n, int channels, bool mirror, uint8_t* to) {
  for (int x = 0; x < n; ++x)
    for (int c = 0; c < channels; ++c) {
      const float* weight = &taps.weight[size_t(x) * size_t(taps.most)];
      const float* p = row + int64_t(taps.first[size_t(x)]) * channels + c;
      float sum = 0.5f;
      for (int k = 0; k < taps.count[size_t(x)]; ++k) sum += weight[k] * p[int64_t(k) * channels];
      to[int64_t(mirror ? n - 1 - x : x) * channels + c] = uint8_t(int(sum));
    }
}

}  // namespace

void resize(const Pixels& from, const Box& box, bool mirror, const ImageSize& out, uint8_t* to) {
  CHECK(box.height > 0 && box.width > 0 && from.channels == out.channels, box.height, box.width,
        from.channels);
  thread_local Taps rows, columns;
  thread_local std::vector<float> row;
  rows.set(from.height, box.top, box.height, out.height);
  columns.set(from.width, box.left, box.width, out.width);
  const int n = from.width * from.channels;
  row.resize(size_t(n) + 4);
  for (int y = 0; y < out.height; ++y, to += int64_t(out.width) * out.channels) {
    sum_rows(from.at + rows.first[size_t(y)] * from.stride, from.stride,
             &rows.weight[size_t(y) * size_t(rows.most)], rows.count[size_t(y)], n, row.data());
    if (from.channels == 3)
      sum_columns_rgb(row.data(), columns, out.width, mirror, to);
    else
      sum_columns(row.data(), columns, out.width, from.channels, mirror, to);
  }
}

}  // namespace skein::data
