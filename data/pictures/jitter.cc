// Blending with black, with the mean gray and with each pixel's own gray.
#include "data/pictures/jitter.h"

#include <algorithm>
#include <array>

namespace skein::data {
namespace {

// Pillow's "L": ITU-R 601-2 in 16 bits.
constexpr int kRed = 19595, kGreen = 38470, kBlue = 7471, kHalf = 0x8000;

// Image.blend(from, to, by), which truncates.
uint8_t blend(int from, int to, float by) {
  // Rounded here, so that no fused instruction is used.
  const float change = float(double(by) * double(to - from));
  const float v = float(from) + change;
  return uint8_t(std::clamp(v, 0.f, 255.f));
}

int gray_of(const uint8_t* p, int channels) {
  if (channels == 3) return (p[0] * kRed + p[1] * kGreen + p[2] * kBlue + kHalf) >> 16;
  int sum = 0;
  for (int c = 0; c < channels; ++c) sum += p[c];
  return sum / channels;
}

// Blends by a table, because equal bytes have equal results.
void blend_all(int from, float by, int64_t bytes, uint8_t* pixels) {
  std::array<uint8_t, 256> becomes;
  for (int v = 0; v < 256; ++v) becomes[size_t(v)] = blend(from, v, by);
  for (int64_t i = 0; i < bytes; ++i) pixels[i] = becomes[pixels[i]];
}

void change_contrast(float by, int64_t n, int channels, uint8_t* pixels) {
  int64_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += gray_of(pixels + i * channels, channels);
  blend_all(int(double(sum) / double(n) + 0.5), by, n * channels, pixels);
}

void change_saturation(float by, int64_t n, int channels, uint8_t* pixels) {
  if (channels == 1) return;
  for (int64_t i = 0; i < n; ++i) {
    uint8_t* p = pixels + i * channels;
    const int gray = gray_of(p, channels);
    for (int c = 0; c < channels; ++c) p[c] = blend(gray, p[c], by);
  }
}

}  // namespace

void jitter_colors(const View& v, const ImageSize& out, uint8_t* pixels) {
  const int64_t n = int64_t(out.height) * out.width;
  for (const View::Color& c : v.colors) {
    if (c.factor == 1) continue;
    if (c.what == View::Color::kBrightness) blend_all(0, c.factor, n * out.channels, pixels);
    if (c.what == View::Color::kContrast) change_contrast(c.factor, n, out.channels, pixels);
    if (c.what == View::Color::kSaturation) change_saturation(c.factor, n, out.channels, pixels);
  }
}

}  // namespace skein::data
