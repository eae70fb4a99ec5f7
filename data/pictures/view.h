// Computes which part of an image a View shows, and draws that part at the output's size.
#pragma once
#include "data/pictures/resize.h"
#include "data/source.h"

namespace skein::data {

// What a View shows of an image: `box`, in the image's coordinates, read through a window of whole pixels:
// the box itself, or a filter's width more where torchvision would resize before it crops.
struct Region {
  Box box;
  int top = 0, left = 0, height = 0, width = 0;
};
Region region_of(const View&, int height, int width, const ImageSize& out);

// Draws `box` of `window` (in the window's coordinates) as the View specifies: resized, shifted, mirrored.
// `window` and `out` must have the same number of channels.
void draw_box(const View&, const Pixels& window, const Box& box, const ImageSize& out, uint8_t* to);

// Both steps, for a whole image.
void draw(const View&, const Pixels& image, const ImageSize& out, uint8_t* to);

}  // namespace skein::data
