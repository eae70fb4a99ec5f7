// Makes the table of segments from names, shapes and layers.
#include "nn/rates.h"

namespace skein::nn {

Segments segments_of(const Flat& flat, const Rates& rates) {
  std::vector<Segments::Segment> all;
  for (size_t i = 0; i < flat.segments.size(); ++i) {
    const Segment& s = flat.segments[i];
    const bool last = s.layer + 1 == flat.layers;
    const int64_t rows = s.matrix() ? s.shape[0] : 1;
    all.push_back({.begin = s.offset,
                   .end = i + 1 < flat.segments.size() ? flat.segments[i + 1].offset : flat.x.size(),
                   .rows = rows,
                   .columns = s.shape.volume() / rows,
                   .hidden = s.matrix() && !last,
                   .rate = float(std::pow(rates.layer_decay, flat.layers - 1 - s.layer) *
                                 (last ? rates.head : 1) * (s.matrix() ? 1 : rates.norms)),
                   .decay = s.decays || rates.decay_all ? 1.f : 0.f});
  }
  return {std::move(all), flat.x.device()};
}

}  // namespace skein::nn
