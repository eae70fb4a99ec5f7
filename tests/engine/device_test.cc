// Allocators, streams, events.
#include <thread>

#include "engine/device/caching_allocator.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

class Memory : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Memory, kDevices, device_name);

TEST_P(Memory, AFreedBlockServesTheNextRequestOfItsSize) {
  Allocator& a = allocator(GetParam());
  void* first = a.take(1000003);
  a.give(first, 1000003);
  EXPECT_EQ(a.take(1000001), first);
  a.give(first, 1000001);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
}

TEST(SizeClasses, WasteAFifthOfSmallBlocksAndAThirtySecondOfLargeOnesAtMost) {
  for (const int64_t odd : {3, 5, 7, 33, 49, 63})  // 49: a side of 224 pixels halved five times is seven
    for (int64_t bytes = odd << 8; bytes < int64_t(1) << 38; bytes *= 2)
      for (const int64_t n : {bytes - 1, bytes, bytes + 1}) {
        const int64_t size = size_class(n), most = n > (1 << 20) ? n / 32 : n / 4;
        EXPECT_GE(size, n);
        EXPECT_LE(size - n, most) << n;
        EXPECT_EQ(size_class(size), size) << n;
      }
}

TEST_P(Memory, UseIsCounted) {
  const MemoryUse before = memory_use(GetParam());
  {
    const Tensor x({1 << 20}, kF32, GetParam());
    EXPECT_GE(memory_use(GetParam()).now, before.now + (4 << 20));
  }
  EXPECT_EQ(memory_use(GetParam()).now, before.now);
  EXPECT_GE(memory_use(GetParam()).peak, before.now + (4 << 20));
  release_cached(GetParam());
}

TEST_P(Memory, AskingForTooMuchSaysHowMuch) {
  try {
    allocator(GetParam()).take(int64_t(1) << 50);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("a block of 1125899.9 GB"), std::string::npos) << e.what();
  }
}

TEST_P(Memory, ManyThreadsMayAskAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 500; ++i) {
        const Tensor x({1 + (i * 37 + t) % 900}, kF32);
        x.data<float>()[0] = float(t);
        EXPECT_EQ(x.data<float>()[0], float(t));
      }
    });
  for (std::thread& t : threads) t.join();
}

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
