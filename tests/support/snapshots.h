// Snapshots are equal if all their fields are, bit for bit.
#pragma once
#include <algorithm>
#include <cstring>

#include "optim/snapshot.h"

namespace skein::optim {

inline bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(kCpu), y = b.to(kCpu);
  for (const Tensor& t : {a, b})
    if (!t.device().is_host()) current_stream(t.device()).sync();
  return bool(x) == bool(y) &&
         (!x || (x.bytes() == y.bytes() && std::memcmp(x.raw(), y.raw(), size_t(x.bytes())) == 0));
}
inline bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }
template <class T>
bool same_bits(const T& a, const T& b) {
  return a == b;
}

inline bool operator==(const Snapshot& one, const Snapshot& other) {
  return std::equal(
      one.fields().begin(), one.fields().end(), other.fields().begin(), other.fields().end(),
      [](const auto& a, const auto& b) {
        if (a.first != b.first || a.second.index() != b.second.index()) return false;
        return std::visit(
            [&](const auto& v) { return same_bits(v, std::get<std::decay_t<decltype(v)>>(b.second)); },
            a.second);
      });
}

}  // namespace skein::optim
