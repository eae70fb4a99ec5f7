// Streams, events, and devices that are not there.
#include "engine/device/device.h"

#include "engine/device/caching_allocator.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

TEST(Device, ACpuStreamHasNothingToWaitFor) {
  Stream s(kCpu);
  const Event e = s.record();
  EXPECT_TRUE(e.ready());
  e.sync();
  s.wait(e);
  s.sync();
  EXPECT_EQ(current_stream(kCpu).device(), kCpu);
  EXPECT_EQ(text(kCpu) + text(kFirstGpu), "cpucuda:0");
}

TEST(Device, WithoutCudaAGpuTensorIsRefused) {
  if (kHasCuda) GTEST_SKIP() << "skipped: built with CUDA";
  EXPECT_EQ(cuda_device_count(), 0);
  EXPECT_THROW(Tensor({1}, kF32, kFirstGpu), Error);
}

}  // namespace
}  // namespace skein
