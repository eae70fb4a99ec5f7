// Samples: one element of each part, the same on every device, and every element at some step.
#include "engine/sample.h"

#include <set>

#include "tests/support/packet_shapes.h"

namespace skein {
namespace {
using namespace testing;

class Sample : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Sample, kDevices, device_name);

Tensor numbered(int64_t n, Device d) {
  const Tensor x({n});
  for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = float(i);
  return x.to(d);
}
Tensor sample(int64_t m, const Tensor& x, const Draw& draw) {
  const Tensor values({m}, kF32, x.device());
  take_sample(values, x, draw);
  return values.to(kCpu);
}
void wait(Device d) {
  if (!d.is_host()) current_stream(d).sync();
}

TEST_P(Sample, ASampleHasOneElementOfEachPart) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {1, 37}, {5, 37}, {37, 37}, {100, 20011}})
    for (uint64_t step = 0; step < 5; ++step) {
      const Draw draw{3, Purpose::kTest, step};
      const Tensor got = sample(m, numbered(n, GetParam()), draw);
      wait(GetParam());
      for (int64_t j = 0; j < m; ++j) {
        EXPECT_GE(got.data<float>()[j], float(j * n / m));
        EXPECT_LT(got.data<float>()[j], float((j + 1) * n / m));
        const int64_t begin = j * n / m, length = (j + 1) * n / m - begin;
        EXPECT_EQ(got.data<float>()[j], float(begin + int64_t(draw.bits(uint64_t(j))) % length));
      }
    }
}

TEST_P(Sample, WhatIsPutBackIsWhereItWasTaken) {
  const Tensor x = numbered(1000, GetParam()), before = x.clone();
  const Draw draw{4, Purpose::kTest, 7};
  const Tensor values({30}, kF32, GetParam());
  take_sample(values, x, draw), put_sample(x, values, draw);
  EXPECT_TRUE(same_bits(x, before));
  fill(values, -1.f), put_sample(x, values, draw);
  const Tensor after = x.to(kCpu);
  wait(GetParam());
  int changed = 0;
  for (int64_t i = 0; i < 1000; ++i) changed += after.data<float>()[i] == -1;
  EXPECT_EQ(changed, 30);
}

TEST(Samples, EveryElementIsDrawnAtSomeStep) {
  std::set<float> seen;
  for (uint64_t step = 0; step < 200; ++step) {
    const Tensor got = sample(4, numbered(43, kCpu), {1, Purpose::kTest, step});
    seen.insert(got.data<float>(), got.data<float>() + 4);
  }
  EXPECT_EQ(seen.size(), 43u);
}

}  // namespace
}  // namespace skein
