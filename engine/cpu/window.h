// Rectangles of images as rows of cells, zero outside the image. The direct kernels read them.
#pragma once
#include "engine/cpu/blocks.h"
#include "engine/cpu/cells.h"

namespace skein::cpu {

struct Rectangle {
  int64_t top, bottom, left, right;  // half-open; may leave the image
  int64_t height() const { return bottom - top; }
  int64_t width() const { return right - left; }
};

// What the windows of some rows of results contain.
inline Rectangle window_of(const ConvArgs& c, int64_t first, int64_t last) {
  const auto& g = c.geometry;
  return {first * g.stride - g.padding, (last - 1) * g.stride - g.padding + (c.w.dim(1) - 1) * g.dilation + 1,
          -g.padding, (c.y.dim(2) - 1) * g.stride - g.padding + (c.w.dim(2) - 1) * g.dilation + 1};
}
// The results whose windows contain a pixel of some rows of the input.
inline Rectangle seen_by(const ConvArgs& c, const Block& b) {
  const auto& g = c.geometry;
  return {floor_div(b.first + g.padding - (c.w.dim(1) - 1) * g.dilation, g.stride),
          (b.last - 1 + g.padding) / g.stride + 1,
          floor_div(g.padding - (c.w.dim(2) - 1) * g.dilation, g.stride),
          (c.x.dim(2) - 1 + g.padding) / g.stride + 1};
}

// Copies r of `image` [H,W,C] to `to` [height, width, pixel].
template <class T>
void stage(Cell* to, const T* image, int64_t H, int64_t W, int64_t C, const Rectangle& r, int64_t pixel) {
  const int64_t left = std::max<int64_t>(r.left, 0), right = std::min(r.right, W);
  for (int64_t h = r.top; h < r.bottom; ++h, to += r.width() * pixel) {
    if (h < 0 || h >= H || left >= right) {
      std::memset(to, 0, size_t(r.width() * pixel) * sizeof(Cell));
      continue;
    }
    std::memset(to, 0, size_t((left - r.left) * pixel) * sizeof(Cell));
    const T* from = image + (h * W + left) * C;
    if (pixel == C)
      fill_cells(to + (left - r.left) * C, from, (right - left) * C);
    else
      for (int64_t w = left; w < right; ++w, from += C) fill_cells(to + (w - r.left) * pixel, from, C);
    std::memset(to + (right - r.left) * pixel, 0, size_t((r.right - right) * pixel) * sizeof(Cell));
  }
}

// The same rectangle of several images. It lies in the images themselves if their elements are cells and they
// contain all of it; otherwise it is a copy in `memory`. Pixels of a copy are never a multiple of half a page
// apart, because a tile's rows would then compete for one set of an 8-way cache.
class Windows {
 public:
  // Pixels are a multiple of `unit` cells apart; what lies between them is undefined.
  Windows(const CellKind& kind, const Tensor& images, int64_t first, int64_t last, const Rectangle& r,
          std::vector<Cell>& memory, int64_t unit = 1)
      : first_(first) {
    const int64_t H = images.dim(1), W = images.dim(2), C = images.dim(3), cells = C / kind.elements;
    const bool inside = r.top >= 0 && r.bottom <= H && r.left >= 0 && r.right <= W;
    const bool crowded = kind.wide->rows > 8 && cells % 512 == 0;
    pixel_ = (cells + unit - 1) / unit * unit + (crowded ? 16 : 0);
    if (inside && pixel_ == cells && size_of(images.dtype()) * kind.elements == sizeof(Cell)) {
      at_ = static_cast<const Cell*>(at(images, ((first * H + r.top) * W + r.left) * C));
      row_ = W * cells, image_ = H * row_;
      return;
    }
    row_ = r.width() * pixel_, image_ = r.height() * row_;
    Cell* to = grow(memory, (last - first) * image_ + 16);
    at_ = to;
    for (int64_t n = first; n < last; ++n, to += image_) {
      const void* image = at(images, n * H * W * C);
      if (kind.elements == 2)  // copied as cells, whatever type they hold
        stage(to, static_cast<const float*>(image), H, W, cells, r, pixel_);
      else
        visit_float(images.dtype(), [&](auto zero) {
          stage(to, static_cast<const decltype(zero)*>(image), H, W, C, r, pixel_);
        });
    }
  }
  const Cell* of(int64_t image) const { return at_ + (image - first_) * image_; }
  int64_t image() const { return image_; }  // cells from one image to the next
  int64_t row() const { return row_; }      // cells from one row to the next
  int64_t pixel() const { return pixel_; }

 private:
  int64_t first_, row_, image_, pixel_;
  const Cell* at_;
};

}  // namespace skein::cpu
