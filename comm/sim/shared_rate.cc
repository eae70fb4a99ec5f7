// Straight lines over the logarithm of the bytes.
#include "comm/sim/shared_rate.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace skein::comm::sim {

double SharedRate::left(double bytes) const {
  if (points.empty()) return 1;
  const auto is_larger = [&](const Point& p) { return p.bytes > bytes; };
  const auto after = std::find_if(points.begin(), points.end(), is_larger);
  if (after == points.begin()) return after->left;
  const Point& before = *std::prev(after);
  if (after == points.end()) return before.left;
  const double way = std::log(bytes / before.bytes) / std::log(after->bytes / before.bytes);
  return before.left + way * (after->left - before.left);
}

bool SharedRate::is_less() const {
  return std::any_of(points.begin(), points.end(), [](const Point& p) { return p.left < 1; });
}

}  // namespace skein::comm::sim
