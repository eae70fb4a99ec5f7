// Element types: every pattern and every rounding boundary of binary16, bfloat16, and visits by type.
#include "engine/dtype.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "engine/vectors/vec.h"
#include "tests/support/testing.h"

namespace skein {
namespace {

f16 pattern(uint32_t bits) {
  f16 h;
  h.bits = uint16_t(bits);
  return h;
}

// The value of the bits by definition, from sign, exponent and mantissa.
double meaning(uint32_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int e = int(bits >> 10 & 31), m = int(bits & 1023);
  if (e == 31) return m ? NAN : sign * HUGE_VAL;
  return sign * (e ? std::ldexp(1024 + m, e - 25) : std::ldexp(m, -24));
}

// Searches all values for the nearest, taking the even pattern of two; beyond the largest by half a
// step it is infinity.
uint16_t nearest(float f) {
  const uint32_t sign = std::signbit(f) ? 0x8000 : 0;
  const double a = std::fabs(double(f));
  if (a >= 65520) return uint16_t(sign | 0x7C00);
  uint32_t below = 0, above = 0x7BFF;  // patterns of positive numbers are in the order of their values
  while (above - below > 1) {
    const uint32_t middle = (below + above) / 2;
    (meaning(middle) <= a ? below : above) = middle;
  }
  const double down = a - meaning(below), up = meaning(above) - a;
  const uint32_t best = down < up ? below : up < down ? above : below % 2 == 0 ? below : above;
  return uint16_t(sign | best);
}

TEST(F16, EveryPatternMeansItsNumberAndComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float f = float(pattern(bits));
    const double wanted = meaning(bits);
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(f)) << bits;
      ASSERT_EQ(f16(f).bits, bits | 0x200) << "a NaN keeps sign and payload and is quiet";
      continue;
    }
    ASSERT_EQ(double(f), wanted) << bits;
    ASSERT_EQ(std::signbit(f), bits >= 0x8000) << bits;
    ASSERT_EQ(f16(f).bits, bits);
  }
}

TEST(F16, RoundsToTheNearestAndOfTwoToTheEven) {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const double here = meaning(bits), next = bits == 0x7BFF ? 65536 : meaning(bits + 1);
    const float middle = float((here + next) / 2);  // exact: one bit more than a half has
    for (float f : {middle, std::nextafter(middle, 0.f), std::nextafter(middle, FLT_MAX)})
      for (float x : {f, -f}) ASSERT_EQ(f16(x).bits, nearest(x)) << x;
  }
}

TEST(F16, RoundsWhatLiesBetweenAndBeyond) {
  // Every 4099th float of either sign: 4099 is prime, so all exponents and low bits occur.
  for (uint64_t u = 0; u < (uint64_t(1) << 32); u += 4099) {
    const uint32_t bits = uint32_t(u);
    float f;
    std::memcpy(&f, &bits, 4);
    if (std::isnan(f)) continue;
    ASSERT_EQ(f16(f).bits, nearest(f)) << f;
  }
}

TEST(F16, TheEndsOfItsRange) {
  EXPECT_EQ(f16(65504.f).bits, 0x7BFF);
  EXPECT_EQ(f16(65519.99f).bits, 0x7BFF);
  EXPECT_EQ(f16(65520.f).bits, 0x7C00);
  EXPECT_EQ(f16(-INFINITY).bits, 0xFC00);
  EXPECT_EQ(f16(FLT_MAX).bits, 0x7C00);
  EXPECT_EQ(f16(std::ldexp(1.f, -14)).bits, 0x0400);
  EXPECT_EQ(f16(std::ldexp(1.f, -24)).bits, 1);
  EXPECT_EQ(f16(std::ldexp(1.f, -25)).bits, 0) << "half the smallest goes to the even, which is 0";
  EXPECT_EQ(f16(std::nextafter(std::ldexp(1.f, -25), 1.f)).bits, 1);
  EXPECT_EQ(f16(-FLT_TRUE_MIN).bits, 0x8000);
  EXPECT_TRUE(std::isnan(float(f16(NAN))));
}

using F16On = testing::OnDevice;
INSTANTIATE_TEST_SUITE_P(Devices, F16On, testing::kDevices, testing::device_name);

// Any form of the loop (vector code, F16C, a kernel) gives the bits of the scalar conversion.
TEST_P(F16On, LoopsConvertAsTheScalarDoes) {
  const Device d = GetParam();
  std::vector<f16> all;
  for (uint32_t bits = 0; bits < 65536; ++bits) all.push_back(pattern(bits));
  const Tensor halves = Tensor::of({65536}, all).to(d), wide({65536}, kF32, d), back({65536}, kF16, d);
  copy(wide, halves);
  copy(back, wide);
  const Tensor on_host = wide.to(kCpu), bits = back.to(kCpu);
  current_stream(d).sync();
  for (uint32_t i = 0; i < 65536; ++i) {
    const float f = on_host.data<float>()[i];
    if (std::isnan(meaning(i))) {
      ASSERT_TRUE(std::isnan(f) && std::isnan(float(bits.data<f16>()[i]))) << i;
      continue;
    }
    ASSERT_EQ(double(f), meaning(i));
    ASSERT_EQ(bits.data<f16>()[i].bits, i);
  }
}

TEST(DTypes, EachFloatingTypeIsVisitedAsItself) {
  std::set<DType> seen;
  for (uint8_t i = 0; i < kDTypes; ++i) {
    const DType t = DType(i);
    if (!is_float(t)) {
      EXPECT_THROW(visit_float(t, [](auto) {}), Error) << t;
      continue;
    }
    visit_float(t, [&](auto zero) {
      EXPECT_EQ(dtype_of<decltype(zero)>::value, t);
      EXPECT_EQ(int64_t(sizeof zero), size_of(t));
      seen.insert(t);
    });
  }
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_STREQ(name_of(kF16), "f16");
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNanAndInfinity) {
  EXPECT_EQ(float(bf16(1.f + 1.f / 256)), 1.f);              // half way: to even
  EXPECT_EQ(float(bf16(1.f + 3.f / 256)), 1.f + 4.f / 256);  // half way: to even
  EXPECT_EQ(float(bf16(1.f + 1.1f / 256)), 1.f + 2.f / 256);
  EXPECT_EQ(float(bf16(-3.5f)), -3.5f);
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float(bf16(inf)), inf);
  EXPECT_EQ(float(bf16(std::numeric_limits<float>::max())), inf);
  uint32_t low_nan_bits = 0x7F800001;
  float low_nan;
  memcpy(&low_nan, &low_nan_bits, 4);
  EXPECT_TRUE(std::isnan(float(bf16(low_nan))));
}

}  // namespace
}  // namespace skein
