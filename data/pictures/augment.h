// Augmentation policies: pure functions from (seed, epoch, index) to a View.
#pragma once
#include <string>

#include "data/source.h"

namespace skein::data {

// none: whole image. mirror: flip at random. shift: pad by 4 (pad by 2 below 32 pixels), random crop, flip
// (CIFAR). region: RandomResizedCrop of torchvision (area 0.08..1, aspect 3/4..4/3) and flip.
enum class Augment : uint8_t { kNone, kMirror, kShift, kRegion };
// The default for a data set: kRegion if images differ in size, kShift for 32x32 color images, kNone for
// digits, kMirror for the others.
Augment default_augment(const std::string& kind, const ImageSize&);
Augment parse_augment(const std::string& name);  // none mirror shift region; BadOption otherwise

View train_view(Augment, uint64_t seed, int64_t epoch, int64_t index, const ImageSize& out);
// torchvision's ColorJitter(strength, strength, strength): each factor uniform in 1 -+ strength, the order of
// the three at random. 0 changes nothing.
void draw_colors(View&, double strength, uint64_t seed, int64_t epoch, int64_t index);
// The view for evaluation: the center if images differ in size (short side to out * 256 / 224),
// else the whole image.
View eval_view(const ImageSize& source, const ImageSize& out);

}  // namespace skein::data
