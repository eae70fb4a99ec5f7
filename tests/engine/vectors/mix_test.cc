// Mixup, cutmix and clipping against scalar references, and their random draws.
#include "engine/vectors/mix.h"

#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

class Mix : public OnDevice {
 protected:
  Tensor there(const Tensor& x) const { return x.to(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, Mix, kDevices, device_name);

constexpr int64_t kRows = 5, kHeight = 4, kWidth = 6, kChannels = 3, kImage = kHeight * kWidth * kChannels;
const std::vector<int32_t> kLabels{3, 0, -1, 2, 1};
const std::vector<float> kMean{0.4f, 0.5f, 0.6f}, kDeviation{0.2f, 0.3f, 0.25f};

Tensor bytes() {
  std::vector<uint8_t> b(size_t(kRows * kImage));
  for (size_t i = 0; i < b.size(); ++i) b[i] = uint8_t(i * 7 + i / 11);
  return Tensor::of({kRows, kHeight, kWidth, kChannels}, b);
}

std::vector<double> plain_blend(const Blend& how, int64_t first, int64_t rows) {
  const Tensor u8 = bytes();
  const auto pixel = [&](int64_t r, int64_t i) { return double(u8.data<uint8_t>()[r * kImage + i]); };
  std::vector<double> y;
  for (int64_t r = first; r < first + rows; ++r)
    for (int64_t i = 0; i < kImage; ++i) {
      const int64_t p = (r + how.shift) % kRows, row = i / kChannels / kWidth,
                    column = i / kChannels % kWidth;
      double v = how.share * pixel(r, i) + (1 - how.share) * pixel(p, i);
      if (how.boxed()) {
        const bool in = row >= how.top && row < how.bottom && column >= how.left && column < how.right;
        v = pixel(in ? p : r, i);
      }
      if (kLabels[size_t(r)] < 0 || kLabels[size_t(p)] < 0) v = pixel(r, i);
      const size_t c = size_t(i % kChannels);
      y.push_back((v / 255 - kMean[c]) / kDeviation[c]);
    }
  return y;
}

TEST_P(Mix, ImagesAreTheirScalarReference) {
  const Tensor x = there(bytes()), labels = there(Tensor::of({kRows}, kLabels));
  const Blend mixup{.share = 0.3f, .shift = 2},
      cutmix{.share = 0.75f, .shift = 4, .top = 1, .left = 2, .bottom = 3, .right = 5}, nothing{};
  for (const Blend& how : {mixup, cutmix, nothing})
    for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, kRows}, {1, 3}, {4, 1}})
      for (const DType t : {kF32, kBF16, kF16})
        EXPECT_TRUE(allclose(blend_image(x, labels, how, first, rows, kMean, kDeviation, t),
                             plain_blend(how, first, rows)))
            << how.shift << ' ' << first << ' ' << name_of(t);
}

TEST_P(Mix, WithoutAPartnerImagesAreNormalized) {
  const Tensor x = there(bytes()), labels = there(Tensor::of({kRows}, kLabels));
  EXPECT_EQ(values(blend_image(x, labels, {}, 0, kRows, kMean, kDeviation, kF32)),
            values(normalize_image(x, kMean, kDeviation, kF32)));
}

TEST_P(Mix, PartnersHaveLabelsWhereBothAreReadable) {
  const Tensor y = partner_labels(there(Tensor::of({kRows}, kLabels)), {.share = 0.5f, .shift = 1}).to(kCpu);
  if (GetParam().is_cuda()) current_stream(GetParam()).sync();
  EXPECT_EQ(std::vector<int32_t>(y.data<int32_t>(), y.data<int32_t>() + kRows),
            (std::vector<int32_t>{0, 0, -1, 1, 3}));
}

double plain_loss(const Tensor& logits, const std::vector<int32_t>& a, const std::vector<int32_t>& b,
                  double share, double s, double rows) {
  const std::vector<double> x = values(logits);
  const size_t n = size_t(logits.dim(1));
  double loss = 0, counted = 0;
  for (size_t r = 0; r < a.size(); ++r) {
    if (a[r] < 0) continue;
    double z = 0;
    for (size_t c = 0; c < n; ++c) z += std::exp(x[r * n + c]);
    for (size_t c = 0; c < n; ++c) {
      const double sure = (int32_t(c) == a[r] ? share : 0) + (int32_t(c) == b[r] ? 1 - share : 0);
      loss -= (s / double(n) + (1 - s) * sure) * (x[r * n + c] - std::log(z));
    }
    counted += 1;
  }
  return loss / (rows > 0 ? rows : counted);
}

TEST_P(Mix, LossOfTwoLabelsIsTheMeanOfTheirLosses) {
  const std::vector<int32_t> a{3, 0, -1, 6, 2, -7}, b{0, 0, -1, 1, 2, -7};
  const Tensor logits = random_uniform({6, 7}, 1, -4, 4), ta = there(Tensor::of({6}, a)),
               tb = there(Tensor::of({6}, b));
  for (const float smoothing : {0.f, 0.1f})
    for (const float share : {0.f, 0.3f, 1.f})
      for (const int64_t rows : {0, 9}) {
        const Targets to{ta, tb, share, rows};
        EXPECT_NEAR(cross_entropy(there(logits), to, smoothing).item(),
                    plain_loss(logits, a, b, share, smoothing, double(rows)), 1e-5);
        gradcheck([&](const Values& v) { return cross_entropy(v[0], to, smoothing); }, {logits},
                  {.step = 1e-2f, .device = GetParam()});
      }
  const float one = cross_entropy(there(logits), Targets{ta, tb, 1, 0}, 0.1f).item();
  EXPECT_EQ(one, cross_entropy(there(logits), ta, 0.1f).item());
}

TEST_P(Mix, LossesOfPartsAddUpToThatOfTheBatch) {
  const std::vector<int32_t> label{3, 0, -1, 6, 2, 5};
  const Tensor logits = there(random_uniform({6, 7}, 1, -4, 4)), labels = there(Tensor::of({6}, label));
  double sum = 0;
  for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, 2}, {2, 1}, {3, 3}})
    sum +=
        cross_entropy(logits.view({rows, 7}, first * 7), Targets{labels.view({rows}, first), {}, 1, 5}, 0.1f)
            .item();
  EXPECT_NEAR(sum, cross_entropy(logits, labels, 0.1f).item(), 1e-6);
}

}  // namespace
}  // namespace skein
