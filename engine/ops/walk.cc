// Strides of dense and of broadcast operands.
#include "engine/ops/walk.h"

#include <algorithm>

namespace skein {

Strides dense_strides(const Shape& s) {
  Strides by{};
  int64_t step = 1;
  for (int i = s.rank() - 1; i >= 0; --i) {
    by[size_t(i)] = step;
    step *= s[i];
  }
  return by;
}

Strides broadcast_strides(const Shape& s, const Shape& out) {
  const Strides own = dense_strides(s);
  Strides by{};
  const int lead = out.rank() - s.rank();
  for (int i = 0; i < s.rank(); ++i) by[size_t(i + lead)] = s[i] == 1 ? 0 : own[size_t(i)];
  return by;
}

Shape broadcast(const char* op, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> out(static_cast<size_t>(rank), 1);
  for (int i = 1; i <= rank; ++i) {
    const int64_t m = i <= a.rank() ? a[a.rank() - i] : 1, n = i <= b.rank() ? b[b.rank() - i] : 1;
    CHECK(m == n || m == 1 || n == 1, op, "cannot broadcast", a, "with", b);
    out[size_t(rank - i)] = m == 1 ? n : m;
  }
  return Shape(out);
}

}  // namespace skein
