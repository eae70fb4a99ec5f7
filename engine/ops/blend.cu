// Bytes to pixels of two images at once: mixup and cutmix.
#include "engine/loops/launch.h"
#include "engine/vectors/constant.h"
#include "engine/vectors/mix.h"

namespace skein {
namespace {

template <class T>
struct BlendPixel {
  T* y;
  const uint8_t* x;
  const int32_t* label;
  const float *scale, *plus;
  Blend given;
  const Blend* slot;
  int64_t first, all, width, pixels, channels;  // `all` rows of `pixels` each
  HD void operator()(int64_t i) const {
    const Blend& how = slot ? *slot : given;
    const int64_t r = first + i / pixels, at = i % pixels;
    const int64_t p = (r + how.shift) % all;
    float share = how.share;
    if (how.boxed()) {
      const int64_t row = at / width, column = at % width;
      const bool inside = row >= how.top && row < how.bottom && column >= how.left && column < how.right;
      share = inside ? 0.f : 1.f;
    }
    if (p == r || label[r] < 0 || label[p] < 0) share = 1;
    const uint8_t *own = x + (r * pixels + at) * channels, *other = x + (p * pixels + at) * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const float v = share * float(own[c]) + (1 - share) * float(other[c]);
      y[i * channels + c] = T(v * scale[c] + plus[c]);
    }
  }
};

struct PartnerLabel {
  int32_t* y;
  const int32_t* label;
  int64_t n;
  Blend given;
  const Blend* slot;
  HD void operator()(int64_t r) const {
    const int32_t other = label[(r + (slot ? slot->shift : given.shift)) % n];
    y[r] = label[r] < 0 || other < 0 ? label[r] : other;
  }
};

}  // namespace

Tensor blend_image(const Tensor& u8, const Tensor& labels, const Blend& how, int64_t first, int64_t rows,
                   const std::vector<float>& mean, const std::vector<float>& std, DType t,
                   const Blend* slot) {
  CHECK(u8.dtype() == kU8 && u8.rank() == 4, "an image batch of bytes [N,H,W,C], not", u8.shape(),
        u8.dtype());
  const int64_t n = u8.dim(0), height = u8.dim(1), width = u8.dim(2), channels = u8.dim(3);
  CHECK(labels.dtype() == kI32 && labels.size() == n && labels.device() == u8.device(), labels.shape(),
        labels.dtype());
  CHECK(int64_t(mean.size()) == channels && int64_t(std.size()) == channels,
        "one mean and deviation a channel:", u8.shape(), mean.size(), std.size());
  CHECK(first >= 0 && rows >= 0 && first + rows <= n, first, rows, n);
  CHECK(how.shift >= 0 && how.top >= 0 && how.left >= 0 && how.bottom <= height && how.right <= width,
        how.shift, how.top, how.left, how.bottom, how.right, u8.shape());
  std::vector<float> scale, plus;
  for (size_t c = 0; c < mean.size(); ++c) {
    scale.push_back(1 / (255 * std[c]));
    plus.push_back(-mean[c] / std[c]);
  }
  const Tensor by = constant(scale, u8.device()), add = constant(plus, u8.device());
  Tensor y({rows, height, width, channels}, t, u8.device());
  visit_float(t, [&](auto v) {
    using T = decltype(v);
    for_each(u8.device(), rows * height * width,
             BlendPixel<T>{y.data<T>(), u8.data<uint8_t>(), labels.data<int32_t>(), by.data<float>(),
                           add.data<float>(), how, slot, first, n, width, height * width, channels});
  });
  return y;
}

Tensor partner_labels(const Tensor& labels, const Blend& how, const Blend* slot) {
  CHECK(labels.dtype() == kI32 && labels.rank() == 1 && how.shift >= 0, labels.dtype(), labels.shape());
  Tensor y(labels.shape(), kI32, labels.device());
  for_each(labels.device(), labels.size(),
           PartnerLabel{y.data<int32_t>(), labels.data<int32_t>(), labels.size(), how, slot});
  return y;
}

}  // namespace skein
