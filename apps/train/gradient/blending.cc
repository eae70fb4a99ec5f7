// Draws a blend.
#include "apps/train/gradient/blending.h"

#include <algorithm>
#include <cmath>

#include "data/pictures/draws.h"

namespace skein::apps {
namespace {

// A box of 1 - share of the area around a random center, cut at the edges; the share
// becomes the area outside.
void draw_box(Blend& b, data::Draws& draws, int height, int width) {
  const double side = std::sqrt(1 - double(b.share));
  const int half_height = int(side * height / 2), half_width = int(side * width / 2);
  const int y = std::min(int(draws.uniform() * height), height - 1),
            x = std::min(int(draws.uniform() * width), width - 1);
  b.top = std::max(0, y - half_height), b.bottom = std::min(height, y + half_height);
  b.left = std::max(0, x - half_width), b.right = std::min(width, x + half_width);
  if (!b.boxed()) b.top = b.left = b.bottom = b.right = 0;
  const double cut = double(b.bottom - b.top) * (b.right - b.left);
  b.share = float(1 - cut / (double(height) * width));
}

}  // namespace

Blend draw_blend(const Blending& how, uint64_t seed, int64_t step, int rank, int64_t rows, int height,
                 int width) {
  Blend b;
  if (!how.on() || rows < 2) return b;
  data::Draws all({seed, Purpose::kMix, uint64_t(step), 0});
  const bool cuts = how.mixup == 0 || (how.cutmix > 0 && all.uniform() < 0.5);
  b.share = float(all.beta(cuts ? how.cutmix : how.mixup));
  if (cuts) draw_box(b, all, height, width);
  data::Draws own({seed, Purpose::kMix, uint64_t(step), uint32_t(rank) + 1});
  b.shift = 1 + std::min(int64_t(own.uniform() * double(rows - 1)), rows - 2);
  return b;
}

}  // namespace skein::apps
