// The backend's conversions in bulk.
#include "engine/cpu/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/cpu/simd.h"
#include "engine/device/processor.h"

namespace skein {
namespace {

TEST(Convert, RoundsAsTheScalarDoes) {
  std::vector<float> x;
  for (uint64_t u = 0; u < (uint64_t(1) << 32); u += 65521) {
    const uint32_t bits = uint32_t(u);
    float f;
    std::memcpy(&f, &bits, 4);
    x.push_back(f);
  }
  // Elements remain after the last whole vector.
  while (x.size() % 8 != 3) x.push_back(1.f + float(x.size()) / 3.f);
  const int64_t n = int64_t(x.size());
  for (DType t : {kF16, kBF16}) {
    const bool flushes = t == kBF16 && chosen_isa() >= Isa::kAvx512Bf16;  // the processor rounds
    const Tensor y({n}, t);
    cpu::narrow(y, x.data());
    std::vector<float> back(x.size());
    cpu::widen(back.data(), y);
    for (size_t i = 0; i < x.size(); ++i) {
      const float wanted = t == kF16 ? float(f16(x[i])) : float(bf16(x[i]));
      const bool zero = flushes && std::abs(x[i]) < 0x1p-126f && back[i] == 0;
      ASSERT_TRUE(zero || std::memcmp(&back[i], &wanted, 4) == 0) << t << ' ' << x[i] << ' ' << back[i];
    }
  }
}

}  // namespace
}  // namespace skein
