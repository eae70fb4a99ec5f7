// A batch norm's statistics: from one pass over the image, or from sums that came out of the convolution.
#include "engine/loops/launch.h"

#include "engine/cuda/batch_norm.h"
#include "engine/cuda/norm_affine.h"
#include "engine/ops/norm_check.h"

namespace skein::cuda {
namespace {

// The mean of a few pixels, which is near each channel's mean, so that squares of differences from
// it do not cancel.
template <class T>
struct NearMean {
  static constexpr int kPixels = 8;
  const T* x;
  float* near;
  int64_t pixels, channels;
  HD void operator()(int64_t c) const {
    const int n = pixels < kPixels ? int(pixels) : kPixels;
    float sum = 0;
    for (int i = 0; i < kPixels; ++i) {
      const int64_t pixel = n < kPixels ? i : pixels * i / kPixels;
      if (i < n) sum += float(x[pixel * channels + c]);
    }
    near[c] = sum / float(n);
  }
};

// Sums of x - near and of its square.
template <class T>
struct SumsNearMean {
  static constexpr int kAhead = 4;
  const T* x;
  const float* near;
  template <int V>
  struct Column {
    float near[V];
  };
  template <int V>
  HD Column<V> column(const Sweep& s, int64_t j) const {
    Column<V> c;
    take_floats(near + s.channel(j), c.near);
    return c;
  }
  template <int V>
  HD Pack<T, V> take(int64_t at) const {
    return load<V>(x + at);
  }
  template <int V>
  HD void add(const Column<V>& c, int64_t, const Pack<T, V>& in, float* sum, float* squares) const {
    for (int v = 0; v < V; ++v) {
      const float d = float(in.v[v]) - c.near[v];
      sum[v] += d;
      squares[v] = fmaf(d, d, squares[v]);
    }
  }
};

// Clamps to [-most, most]; a NaN stays a NaN.
HD float within(float v, float most) { return v > most ? most : v < -most ? -most : v; }

// The norm in the form that a convolution applies: x scale + bias, both of the image's type
// (docs/gpu_fusions.md has the errors). The bias is made for the rounded scale, so that rounding does not
// shift the mean. If the mean is beyond kStill deviations, a deviation is less than half a step of f16 and
// rounding would leave nothing of it, so the channel counts as constant. What would be infinite in f16
// becomes its largest number, because zero times infinity is NaN.
template <class T>
struct KeepMap {
  const float *gamma, *shift;
  T *scale, *bias;
  HD void operator()(int64_t c, float mean, float rstd) const {
    constexpr float kMost = 65504, kStill = 2048;
    scale[c] = T(fabsf(mean) * rstd > kStill ? 0.f : within(gamma[c] * rstd, kMost));
    bias[c] = T(within(fmaf(-mean, float(scale[c]), shift[c]), kMost));
  }
};

template <class T>
struct Keep {
  float *mean, *rstd, *running_mean, *running_var;
  float momentum, epsilon;
  KeepMap<T> map;
  // `n` values have this mean, and `square` is the mean of the squares of their distances from mean - d.
  HD void operator()(int64_t c, double n, double m, double square, double d) const {
    const double v = square - d * d, var = v > 0 || v != v ? v : 0;
    mean[c] = float(m);
    rstd[c] = float(1 / sqrt(var + double(epsilon)));
    if (map.scale) map(c, mean[c], rstd[c]);
    if (!running_mean) return;
    running_mean[c] += momentum * (float(m) - running_mean[c]);
    running_var[c] += momentum * (float(n > 1 ? var * n / (n - 1) : var) - running_var[c]);
  }
};
template <class T>
Keep<T> keep_of(const BatchNormArgs& a, const ChannelMap& map) {
  KeepMap<T> narrow{};
  if (map.scale) narrow = {a.gamma.in<float>(), a.shift.in<float>(), map.scale.out<T>(), map.bias.out<T>()};
  return {a.mean.data<float>(),
          a.rstd.data<float>(),
          data_or_null<float>(a.running_mean),
          data_or_null<float>(a.running_var),
          a.momentum,
          a.epsilon,
          narrow};
}

template <class T>
struct FinishNearMean {
  const float* near;
  double n;
  Keep<T> keep;
  HD void finish(int64_t c, double sum, double squares) const {
    const double d = sum / n;
    keep(c, n, double(near[c]) + d, squares / n, d);
  }
};

// Where sums cancel, the channel's pixels are summed again, around the mean, which is slow but rare. The sums
// that a library takes in tiles have an error of some 2^-21, which makes 2^-12 of the variance and half of
// that of its root: less than a step of either 16-bit type.
template <class T>
struct FinishSums {
  const T* x;
  const float *sums, *squares;
  int64_t pixels, channels;
  Keep<T> keep;
  template <class Team>
  HD void operator()(int64_t c, Team team) const {
    const double n = double(pixels);
    double mean = double(sums[c]) / n, square = double(squares[c]) / n, d = mean;
    if (sums_cancel(mean, square)) {
      const float center = float(mean);
      double sum = 0, other = 0;
      for (int64_t i = team.lane(); i < pixels; i += Team::kLanes) {
        const double v = double(float(x[i * channels + c]) - center);
        sum += v, other += v * v;
      }
      d = team.sum(sum) / n, square = team.sum(other) / n, mean = double(center) + d;
    }
    if (team.lane() == 0) keep(c, n, mean, square, d);
  }
};

template <class T, int V>
void statistics_of_image(const BatchNormArgs& a, const Keep<T>& keep) {
  const Device d = a.x.device();
  const T* x = a.x.data<T>();
  const Sweep s = summing_sweep_of(a.x, V);
  const Tensor near({s.channels}, kF32, d);
  float* const n = near.data<float>();
  for_each(d, s.channels, NearMean<T>{x, n, s.pixels(), s.channels});
  sum_and_finish<V>(d, s, SumsNearMean<T>{x, n}, FinishNearMean<T>{n, double(s.pixels()), keep});
}

}  // namespace

void statistics(const BatchNormArgs& a, const ChannelMap& map) {
  const int64_t channels = a.x.dim(-1);
  with_packs(channels, {&a.x}, [&](auto zero, auto width) {
    using T = decltype(zero);
    const Keep<T> keep = keep_of<T>(a, map);
    if (a.sums.sum)
      for_each_team(a.x.device(), channels, a.x.size(),
                    FinishSums<T>{a.x.data<T>(), a.sums.sum.data<float>(), a.sums.squares.data<float>(),
                                  a.x.size() / channels, channels, keep});
    else
      statistics_of_image<T, decltype(width)::value>(a, keep);
  });
}

}  // namespace skein::cuda
