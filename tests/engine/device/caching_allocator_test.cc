// Allocators: blocks that are used again, size classes, how much is in use, limits.
#include "engine/device/caching_allocator.h"

#include <thread>

#include "engine/device/memory.h"
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

// A limit simulates a small device.
TEST(OutOfMemory, NamesTheTensorWhatItIsForAndWhatThereIs) {
  release_cached(kCpu);
  limit_memory(kCpu, memory_use(kCpu).now + (8 << 20));
  try {
    const MemoryFor what("the forward pass");
    const Tensor fits({1 << 18}), large({4, 1024, 1024}, kBF16);
    ADD_FAILURE() << "it should not fit";
  } catch (const OutOfMemory& e) {
    const std::string said = e.what();
    EXPECT_NE(said.find("out of memory on cpu: a tensor bf16 [4,1024,1024] of 8 MB for the forward pass"),
              std::string::npos)
        << said;
    EXPECT_EQ(e.asked, 8 << 20);
    EXPECT_GT(e.in_use, 0);
    EXPECT_GT(e.room, e.in_use);
  }
  const Tensor one({1 << 20}), half({1 << 19});  // cached blocks are released first
  limit_memory(kCpu, 0);
  const Tensor enough({1 << 24});
}

TEST(OutOfMemory, WhatDidNotFitIsNotInThePeak) {
  reset_peak(kCpu);
  const MemoryUse before = memory_use(kCpu);
  EXPECT_THROW(allocator(kCpu).take(int64_t(1) << 50), OutOfMemory);
  EXPECT_EQ(memory_use(kCpu).now, before.now);
  EXPECT_EQ(memory_use(kCpu).peak, before.peak);
}

TEST(OutOfMemory, PeaksCanBeForgotten) {
  { const Tensor large({1 << 22}); }
  reset_peak(kCpu);
  const MemoryUse before = memory_use(kCpu);
  EXPECT_EQ(before.peak, before.now);
  { const Tensor small({1 << 16}); }
  EXPECT_EQ(memory_use(kCpu).peak, before.now + (1 << 18));
}

}  // namespace
}  // namespace skein
