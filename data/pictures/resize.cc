// Separable resampling: each output row is a weighted sum of source rows, then of that row's pixels.
#include "data/pictures/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/device/processor.h"

namespace skein::data {
namespace {

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

// Weighted sums of rows and, of three channels, of columns. Every element is a sum of its own, taken in the
// same order for vectors of any width, so that all give the same bits.
struct RowSum {
  const uint8_t* rows;
  int64_t stride;
  const float* weight;
  int count, n;
  float* sum;
};
[[gnu::always_inline]] inline void sum_rows_of(const RowSum& r) {
  const float* weight = r.weight;
  float* sum = r.sum;
  for (int i = 0; i < r.n; ++i) sum[i] = weight[0] * float(r.rows[i]);
  int k = 1;
  for (; k + 1 < r.count; k += 2) {
    const uint8_t *a = r.rows + k * r.stride, *b = a + r.stride;
    const float wa = weight[k], wb = weight[k + 1];
    for (int i = 0; i < r.n; ++i) sum[i] += wa * float(a[i]) + wb * float(b[i]);
  }
  for (; k < r.count; ++k) {
    const uint8_t* a = r.rows + k * r.stride;
    for (int i = 0; i < r.n; ++i) sum[i] += weight[k] * float(a[i]);
  }
}

// The pixels of a row from left to right, some at a time, each three channels in four lanes.
struct Drawing {
  static constexpr int kTogether = 4;
  std::vector<int> from;      // of each pixel, in the row of floats
  std::vector<float> weight;  // [pixels at a time][tap][pixel and lane]; 0 after a pixel's last tap
  int taps;

  void set(const Taps& columns, int n, bool mirror) {
    taps = *std::max_element(columns.count.begin(), columns.count.end());
    const int all = (n + kTogether - 1) / kTogether * kTogether;
    from.assign(size_t(all), 0), weight.assign(size_t(all) * size_t(taps) * 4, 0.f);
    for (int at = 0; at < n; ++at) {
      const int x = mirror ? n - 1 - at : at;
      from[size_t(at)] = columns.first[size_t(x)] * 3;
      for (int k = 0; k < columns.count[size_t(x)]; ++k)
        std::fill_n(&weight[size_t((at / kTogether * taps + k) * kTogether + at % kTogether) * 4], 4,
                    columns.weight[size_t(x) * size_t(columns.most) + size_t(k)]);
    }
  }
};

template <int N>
struct Lanes {
  using Floats [[gnu::vector_size(16 * N)]] = float;
  using Ints [[gnu::vector_size(16 * N)]] = int;
  using Bytes [[gnu::vector_size(16 * N)]] = uint8_t;
};
template <class All, class Half, int... I>
[[gnu::always_inline]] inline void put_side_by_side(All& all, const Half& a, const Half& b,
                                                    std::integer_sequence<int, I...>) {
  all = __builtin_shufflevector(a, b, I...);
}
// N pixels, of which the fourth lane reads the next one, so the row must be a float longer than its pixels.
template <int N>
[[gnu::always_inline]] inline void load_pixels(const float* row, const int* from,
                                               typename Lanes<N>::Floats& all) {
  if constexpr (N == 1) {
    std::memcpy(&all, row + *from, sizeof all);
  } else {
    typename Lanes<N / 2>::Floats a, b;
    load_pixels<N / 2>(row, from, a);
    load_pixels<N / 2>(row, from + N / 2, b);
    put_side_by_side(all, a, b, std::make_integer_sequence<int, 4 * N>());
  }
}

// The low bytes of the three channels of pixels First, First + 1, ..., each where it belongs in sixteen bytes
// of its own; zero elsewhere.
template <int First, class Bytes, int... I>
[[gnu::always_inline]] inline void place(Bytes& b, std::integer_sequence<int, I...>) {
  constexpr auto channel = [](int i) { return i % 16 - 3 * (First + i / 16); };
  constexpr auto is_one = [](int c) { return c >= 0 && c < 3; };
  b = __builtin_shufflevector(b, b, (is_one(channel(I)) ? I / 16 * 16 + 4 * channel(I) : I)...) &
      Bytes{uint8_t(is_one(channel(I)) ? 0xFF : 0)...};
}
template <class Half, class All, int... I>
[[gnu::always_inline]] inline void add_halves(Half& sum, const All& b, std::integer_sequence<int, I...>) {
  sum = __builtin_shufflevector(b, b, I...) | __builtin_shufflevector(b, b, (int(sizeof sum) + I)...);
}
template <int N>
[[gnu::always_inline]] inline void gather(const typename Lanes<N>::Bytes& b, Lanes<1>::Bytes& all) {
  if constexpr (N == 1) {
    all = b;
  } else {
    typename Lanes<N / 2>::Bytes half;
    add_halves(half, b, std::make_integer_sequence<int, 8 * N>());
    gather<N / 2>(half, all);
  }
}

// N pixels a vector.
template <int N>
[[gnu::always_inline]] inline void sum_columns_of(const float* row, const Drawing& d, int n, uint8_t* to) {
  using Floats = typename Lanes<N>::Floats;
  using Bytes = typename Lanes<N>::Bytes;
  constexpr int kVectors = Drawing::kTogether / N;
  const float* weight = d.weight.data();
  for (int at = 0; at < n; at += Drawing::kTogether, to += 3 * Drawing::kTogether) {
    Floats sum[kVectors];
    for (Floats& s : sum) s = Floats{} + 0.5f;
    for (int k = 0; k < d.taps; ++k)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v, weight += 4 * N) {
        Floats w, pixels;
        std::memcpy(&w, weight, sizeof w);
        load_pixels<N>(row + 3 * k, &d.from[size_t(at + v * N)], pixels);
        sum[v] += w * pixels;
      }
    Bytes bytes{};
    [&]<int... V>(std::integer_sequence<int, V...>) __attribute__((always_inline)) {
      const auto add = [&](auto v) __attribute__((always_inline)) {
        auto one = Bytes(__builtin_convertvector(sum[v()], typename Lanes<N>::Ints));
        place<v() * N>(one, std::make_integer_sequence<int, 16 * N>());
        bytes |= one;
      };
      (add(std::integral_constant<int, V>()), ...);
    }
    (std::make_integer_sequence<int, kVectors>());
    Lanes<1>::Bytes all;
    gather<N>(bytes, all);
    if (3 * (n - at) >= int(sizeof all))
      std::memcpy(to, &all, sizeof all);  // the last bytes are written over by the next pixels
    else
      std::memcpy(to, &all, size_t(3 * std::min(n - at, Drawing::kTogether)));
  }
}

// The same for the instruction sets that processors have.
struct Sums {
  void (*rows)(const RowSum&);
  void (*columns)(const float* row, const Drawing&, int n, uint8_t* to);
};
void sum_rows(const RowSum& r) { sum_rows_of(r); }
void sum_columns_rgb(const float* row, const Drawing& d, int n, uint8_t* to) {
  sum_columns_of<2>(row, d, n, to);
}
constexpr Sums kSums{sum_rows, sum_columns_rgb};
#if defined(__x86_64__) && !defined(__clang__)  // clang spells the target otherwise
#define WIDE [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]
WIDE void sum_rows_wide(const RowSum& r) { sum_rows_of(r); }
WIDE void sum_columns_wide(const float* row, const Drawing& d, int n, uint8_t* to) {
  sum_columns_of<4>(row, d, n, to);
}
#undef WIDE
constexpr Sums kWideSums{sum_rows_wide, sum_columns_wide};
#else
constexpr Sums kWideSums = kSums;
#endif

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
  thread_local Drawing drawing;
  static const Sums& sums = chosen_isa() >= Isa::kAvx512 ? kWideSums : kSums;
  rows.set(from.height, box.top, box.height, out.height);
  columns.set(from.width, box.left, box.width, out.width);
  if (from.channels == 3) drawing.set(columns, out.width, mirror);
  const int n = from.width * from.channels;
  row.resize(size_t(n) + size_t(columns.most) * 3 + 4);  // taps that weigh nothing may read beyond the pixels
  for (int y = 0; y < out.height; ++y, to += int64_t(out.width) * out.channels) {
    sums.rows({from.at + rows.first[size_t(y)] * from.stride, from.stride,
               &rows.weight[size_t(y) * size_t(rows.most)], rows.count[size_t(y)], n, row.data()});
    if (from.channels == 3)
      sums.columns(row.data(), drawing, out.width, to);
    else
      sum_columns(row.data(), columns, out.width, from.channels, mirror, to);
  }
}

}  // namespace skein::data
