// SharedRate: what is left of a cable's rate while several messages use it, by their size.
#pragma once
#include <vector>

namespace skein::comm::sim {

// Competing connections lose packets, and wait for acknowledgments behind each other's bytes, the more so the
// longer they compete. Between two points the share follows the logarithm of the bytes; beyond them it stays.
struct SharedRate {
  struct Point {
    double bytes, left;  // left: share of the rate, above 0 and at most 1
  };
  std::vector<Point> points = {};  // of more and more bytes, above 0; none: everything is left
  double left(double bytes) const;
  bool is_less() const;  // than everything, for some messages
};

}  // namespace skein::comm::sim
