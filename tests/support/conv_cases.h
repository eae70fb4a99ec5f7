// Convolutions that are tried on every processor.
#pragma once
#include <vector>

#include "engine/backend.h"

namespace skein::testing {

struct ConvCase {
  int64_t n, h, w, c, o, r, s;
  ConvGeometry geometry;
};

inline const std::vector<ConvCase> kConvCases = {
    {2, 9, 7, 3, 16, 3, 3, {1, 1, 1, 1}},   {2, 8, 8, 16, 16, 3, 3, {1, 1, 1, 1}},
    {1, 11, 9, 1, 5, 5, 5, {1, 0, 1, 1}},   {2, 9, 9, 5, 7, 3, 3, {2, 1, 1, 1}},
    {3, 15, 13, 3, 64, 7, 7, {2, 3, 1, 1}}, {2, 6, 6, 16, 32, 1, 1, {2, 0, 1, 1}},
    {2, 6, 6, 32, 24, 1, 1, {1, 0, 1, 1}},  {1, 5, 5, 1, 1, 3, 3, {1, 1, 1, 1}},
    {2, 28, 28, 1, 32, 3, 3, {1, 1, 1, 1}}, {5, 4, 4, 64, 64, 3, 3, {1, 1, 1, 1}},
    {2, 5, 6, 7, 9, 2, 4, {1, 1, 1, 1}}};

inline std::vector<ConvCase> with(std::vector<ConvCase> all, const std::vector<ConvCase>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace skein::testing
