// Pictures that were decoded or resized, and how far they are from what they should be.
#pragma once
#include "data/pictures/picture.h"
#include "data/pictures/view.h"
#include "tests/support/data_files.h"

namespace skein::data {

using Decode = bool (*)(const uint8_t*, size_t, const View&, const ImageSize&, Picture&);

// The image as a View shows it, decoded; an empty raster if that fails.
inline Raster decoded(Decode decode, const Bytes& file, const View& view, const ImageSize& out) {
  Picture p;
  if (!decode(file.data(), file.size(), view, out, p)) return {};
  Raster r{out.height, out.width, 3, Bytes(size_t(out.height * out.width * 3))};
  draw(view, p, out, r.bytes.data());
  return r;
}

// Writes a split with two images in each of two classes.
inline void write_split(const TemporaryDirectory& d, const std::string& split, const Bytes& image) {
  for (const char* file : {"/cat/a.jpg", "/cat/b.jpg", "/dog/a.jpg", "/dog/b.jpg"})
    d.write(split + file, image);
}

inline Raster decoded_whole(Decode decode, const Bytes& file, int height, int width) {
  return decoded(decode, file, View{}, {height, width, 3});
}

inline double mean_difference(const Raster& a, const Raster& b) {
  if (a.bytes.size() != b.bytes.size() || a.bytes.empty()) return 1e9;
  double sum = 0;
  for (size_t i = 0; i < a.bytes.size(); ++i) sum += std::abs(int(a.bytes[i]) - int(b.bytes[i]));
  return sum / double(a.bytes.size());
}

inline Raster gray_as_rgb(const Raster& gray) {
  Raster r{gray.height, gray.width, 3, {}};
  for (int i = 0; i < gray.height * gray.width; ++i)
    for (int c = 0; c < 3; ++c) r.bytes.push_back(gray.bytes[size_t(i * gray.channels)]);
  return r;
}

inline Pixels pixels_of(const Raster& r) {
  return {r.bytes.data(), r.height, r.width, r.channels, int64_t(r.width) * r.channels};
}

// A triangle of half-width max(1, scale) about each output pixel's center, over the pixels there are.
inline double tap(double center, int pixel, double scale) {
  return std::max(0.0, 1 - std::abs(pixel + 0.5 - center) / std::max(scale, 1.0));
}

inline double resampled(const Raster& r, const Box& box, const ImageSize& out, int y, int x, int c) {
  const double sy = box.height / out.height, sx = box.width / out.width;
  const double cy = box.top + (y + 0.5) * sy, cx = box.left + (x + 0.5) * sx;
  double sum = 0, weights = 0;
  for (int j = 0; j < r.height; ++j)
    for (int i = 0; i < r.width; ++i) {
      const double w = tap(cy, j, sy) * tap(cx, i, sx);
      sum += w * r.at(j, i, c), weights += w;
    }
  return sum / weights;
}

}  // namespace skein::data
