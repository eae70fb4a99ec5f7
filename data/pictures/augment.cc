// Draws Views: each sample of each epoch has 32 words of its own in the counter space.
#include "data/pictures/augment.h"

#include <algorithm>
#include <cmath>

#include "engine/random.h"
#include "engine/words/find_row.h"

namespace skein::data {
namespace {

// The j-th of a sample's words. A Draw has 2^34 words; further samples use another lane.
struct SampleDraw {
  Draw draw;
  uint64_t first;
  SampleDraw(uint64_t seed, int64_t epoch, int64_t index)
      : draw{seed, Purpose::kAugment, uint64_t(epoch), uint32_t(index >> 29)},
        first((uint64_t(index) & ((uint64_t(1) << 29) - 1)) * 32) {}
  float unit(int j) const { return draw.unit(first + uint64_t(j)); }
  int below(int n, int j) const { return int(unit(j) * float(n)); }
};

}  // namespace

Augment default_augment(const std::string& kind, const ImageSize& image) {
  if (image.height == 0) return Augment::kRegion;
  if (kind == "mnist") return Augment::kNone;  // a mirrored digit is not a digit
  return image == ImageSize{32, 32, 3} ? Augment::kShift : Augment::kMirror;
}

Augment parse_augment(const std::string& name) {
  return one_of<Augment>("--augment", name,
                         {{"none", Augment::kNone},
                          {"mirror", Augment::kMirror},
                          {"shift", Augment::kShift},
                          {"region", Augment::kRegion}});
}

View train_view(Augment policy, uint64_t seed, int64_t epoch, int64_t index, const ImageSize& out) {
  const SampleDraw draw(seed, epoch, index);
  View v;
  if (policy == Augment::kNone) return v;
  v.mirror = draw.unit(0) < 0.5f;
  if (policy == Augment::kShift) {
    v.kind = View::kShift;
    v.pad = std::min(out.height, out.width) < 32 ? 2 : 4;
    v.shift_y = draw.below(2 * v.pad + 1, 1);
    v.shift_x = draw.below(2 * v.pad + 1, 2);
  } else if (policy == Augment::kRegion) {
    v.kind = View::kRegion;
    v.at_y = draw.unit(1);
    v.at_x = draw.unit(2);
    const float widest = std::log(4.f / 3.f);
    for (int t = 0; t < 10; ++t) {
      v.area[t] = 0.08f + 0.92f * draw.unit(3 + 2 * t);
      v.log_aspect[t] = widest * (2 * draw.unit(4 + 2 * t) - 1);
    }
  }
  return v;
}

void draw_colors(View& v, double strength, uint64_t seed, int64_t epoch, int64_t index) {
  if (strength == 0) return;
  const SampleDraw draw(seed, epoch, index);
  using Color = View::Color;
  constexpr Color::What kOrders[6][3] = {{Color::kBrightness, Color::kContrast, Color::kSaturation},
                                         {Color::kBrightness, Color::kSaturation, Color::kContrast},
                                         {Color::kContrast, Color::kBrightness, Color::kSaturation},
                                         {Color::kContrast, Color::kSaturation, Color::kBrightness},
                                         {Color::kSaturation, Color::kBrightness, Color::kContrast},
                                         {Color::kSaturation, Color::kContrast, Color::kBrightness}};
  const auto& order = kOrders[draw.below(6, 27)];
  for (int i = 0; i < 3; ++i)
    v.colors[size_t(i)] = {order[i], 1 + float(strength) * (2 * draw.unit(24 + order[i]) - 1)};
}

View eval_view(const ImageSize& source, const ImageSize& out) {
  View v;
  if (source.height != 0) return v;
  v.kind = View::kCenter;
  v.resize_to = int(std::lround(std::min(out.height, out.width) * 256.0 / 224.0));
  return v;
}

}  // namespace skein::data
