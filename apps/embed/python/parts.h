// Parts of a vector as Python names them, for optimizers that treat each in its own way.
#pragma once
#include <tuple>
#include <vector>

#include "engine/vectors/segments.h"

namespace skein::apps {

// begin, end, rows, columns, hidden, decays
using Part = std::tuple<int64_t, int64_t, int64_t, int64_t, bool, bool>;

inline Segments segments_of(const std::vector<Part>& parts, Device d = kCpu) {
  if (parts.empty()) return {};
  std::vector<Segments::Segment> all;
  for (const auto& [begin, end, rows, columns, hidden, decays] : parts)
    all.push_back({.begin = begin,
                   .end = end,
                   .rows = rows,
                   .columns = columns,
                   .hidden = hidden,
                   .decay = decays ? 1.f : 0.f});
  return {all, d};
}

}  // namespace skein::apps
