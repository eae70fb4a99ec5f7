// Vectors of lengths around those of packets, for tests of passes that work by packets.
#pragma once
#include <cstring>

#include "tests/support/testing.h"

namespace skein::testing {

// Lengths around packets, and one past the length from which loops run in parallel.
inline constexpr int64_t kLengths[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 1023, 1024, 1027, 20011};

// f(n, make) for every length, with tensors that begin on a packet and tensors that do not; make(seed, type)
// is a random tensor.
using Make = std::function<Tensor(uint64_t seed, DType)>;
inline void for_shapes(Device d, const std::function<void(int64_t, const Make&)>& f) {
  for (const int64_t n : kLengths)
    for (const int64_t at : {0, 1}) {
      SCOPED_TRACE(text(n, " elements from ", at));
      f(n,
        [&](uint64_t seed, DType t) { return random_uniform({n + at}, seed, -1, 1, t).to(d).view({n}, at); });
    }
}

inline ::testing::AssertionResult same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(kCpu), y = b.to(kCpu);
  if (!a.device().is_host()) current_stream(a.device()).sync();
  for (int64_t i = 0; i < x.size(); ++i)
    if (std::memcmp(x.in<float>() + i, y.in<float>() + i, sizeof(float)) != 0)
      return ::testing::AssertionFailure()
             << "element " << i << " is " << x.in<float>()[i] << ", wanted " << y.in<float>()[i];
  return ::testing::AssertionSuccess();
}

}  // namespace skein::testing
