// Draws a decoder's picture into the output.
#include "data/pictures/picture.h"

#include <algorithm>
#include <cmath>

namespace skein::data {

void draw(const View& view, const Picture& picture, const ImageSize& out, uint8_t* to) {
  const Pixels all = picture.pixels();
  const Box& box = picture.box;
  if (view.kind != View::kRegion) return draw_box(view, all, box, out, to);
  // torchvision crops a random region before it resizes it: the filter must not reach beyond the box.
  const int top = int(box.top), left = int(box.left);
  const int bottom = std::min(all.height, int(std::ceil(box.top + box.height)));
  const int right = std::min(all.width, int(std::ceil(box.left + box.width)));
  const uint8_t* corner = all.at + top * all.stride + int64_t(left) * all.channels;
  draw_box(view, {corner, bottom - top, right - left, all.channels, all.stride},
           {box.top - top, box.left - left, box.height, box.width}, out, to);
}

}  // namespace skein::data
