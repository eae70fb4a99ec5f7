// RandomResizedCrop, center crop, shift and mirror as geometry.
#include "data/pictures/view.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace skein::data {
namespace {

// The first candidate that fits, else the largest centered part of an allowed aspect.
Region random_region(const View& v, int height, int width) {
  Region r;
  for (size_t t = 0; t < v.area.size() && r.height == 0; ++t) {
    const double area = double(v.area[t]) * height * width, aspect = std::exp(double(v.log_aspect[t]));
    const int64_t w = std::lround(std::sqrt(area * aspect)), h = std::lround(std::sqrt(area / aspect));
    if (w <= 0 || h <= 0 || w > width || h > height) continue;
    r.height = int(h), r.width = int(w);
    r.top = std::min(int(v.at_y * float(height - r.height + 1)), height - r.height);
    r.left = std::min(int(v.at_x * float(width - r.width + 1)), width - r.width);
  }
  if (r.height == 0) {
    r.height = std::clamp(int(std::lround(width * 4.0 / 3.0)), 1, height);
    r.width = std::clamp(int(std::lround(height * 4.0 / 3.0)), 1, width);
    r.top = (height - r.height) / 2, r.left = (width - r.width) / 2;
  }
  r.box = {double(r.top), double(r.left), double(r.height), double(r.width)};
  return r;
}

// Resizes and crops in one step: the box that becomes the output, and a window with the filter's margin.
Region center_region(const View& v, int height, int width, const ImageSize& out) {
  CHECK(v.resize_to > 0, v.resize_to);
  const double by = std::min({double(std::min(height, width)) / v.resize_to, double(height) / out.height,
                              double(width) / out.width});
  Region r;
  r.box = {(height - out.height * by) / 2, (width - out.width * by) / 2, out.height * by, out.width * by};
  const int margin = int(std::ceil(std::max(by, 1.0)));
  r.top = std::max(0, int(std::floor(r.box.top)) - margin);
  r.left = std::max(0, int(std::floor(r.box.left)) - margin);
  r.height = std::min(height, int(std::ceil(r.box.top + r.box.height)) + margin) - r.top;
  r.width = std::min(width, int(std::ceil(r.box.left + r.box.width)) + margin) - r.left;
  return r;
}

void copy_mirrored(const uint8_t* from, int pixels, int channels, uint8_t* to) {
  for (int x = 0; x < pixels; ++x)
    for (int c = 0; c < channels; ++c)
      to[int64_t(pixels - 1 - x) * channels + c] = from[int64_t(x) * channels + c];
}

// `image` has the output's size.
void copy(const Pixels& image, bool mirror, uint8_t* to) {
  const int64_t row = int64_t(image.width) * image.channels;
  if (!mirror && image.stride == row) {
    std::memcpy(to, image.at, size_t(row * image.height));
    return;
  }
  for (int y = 0; y < image.height; ++y, to += row) {
    const uint8_t* from = image.at + y * image.stride;
    if (mirror)
      copy_mirrored(from, image.width, image.channels, to);
    else
      std::memcpy(to, from, size_t(row));
  }
}

// Output pixel (y, x) is pixel (y + shift_y - pad, x + shift_x - pad) of the image or 0, then mirrored.
void copy_shifted(const Pixels& image, const View& v, uint8_t* to) {
  const int dy = v.shift_y - v.pad, dx = v.shift_x - v.pad, channels = image.channels;
  const int first = std::clamp(-dx, 0, image.width), last = std::clamp(image.width - dx, first, image.width);
  const int64_t row = int64_t(image.width) * channels;
  std::memset(to, 0, size_t(row * image.height));
  for (int y = std::max(0, -dy); y < std::min(image.height, image.height - dy); ++y) {
    const uint8_t* from = image.at + (y + dy) * image.stride + int64_t(first + dx) * channels;
    uint8_t* line = to + y * row;
    if (v.mirror)
      copy_mirrored(from, last - first, channels, line + int64_t(image.width - last) * channels);
    else
      std::memcpy(line + int64_t(first) * channels, from, size_t(last - first) * size_t(channels));
  }
}

}  // namespace

Region region_of(const View& v, int height, int width, const ImageSize& out) {
  CHECK(height > 0 && width > 0, height, width);
  if (v.kind == View::kRegion) return random_region(v, height, width);
  if (v.kind == View::kCenter) return center_region(v, height, width, out);
  return {{0, 0, double(height), double(width)}, 0, 0, height, width};
}

void draw_box(const View& v, const Pixels& window, const Box& box, const ImageSize& out, uint8_t* to) {
  CHECK(window.channels == out.channels, window.channels, out.channels);
  const bool same = window.height == out.height && window.width == out.width &&
                    box == Box{0, 0, double(out.height), double(out.width)};
  if (v.kind != View::kShift) {
    if (same) return copy(window, v.mirror, to);
    return resize(window, box, v.mirror, out, to);
  }
  if (same) return copy_shifted(window, v, to);
  thread_local std::vector<uint8_t> resized;
  const int64_t row = int64_t(out.width) * out.channels;
  resized.resize(size_t(row * out.height));
  resize(window, box, false, out, resized.data());
  copy_shifted({resized.data(), out.height, out.width, out.channels, row}, v, to);
}

void draw(const View& v, const Pixels& image, const ImageSize& out, uint8_t* to) {
  const Region r = region_of(v, image.height, image.width, out);
  const uint8_t* corner = image.at + r.top * image.stride + int64_t(r.left) * image.channels;
  draw_box(v, {corner, r.height, r.width, image.channels, image.stride},
           {r.box.top - r.top, r.box.left - r.left, r.box.height, r.box.width}, out, to);
}

}  // namespace skein::data
