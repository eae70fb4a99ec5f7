// Streams, events and blocks of memory between streams, on a device.
#include <cuda_runtime.h>

#include <thread>

#include "engine/device/device_group.h"
#include "engine/device/device_use.h"
#include "engine/vectors/vec.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

class CudaMemory : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, CudaMemory, ::testing::Values(kFirstGpu), device_name);

TEST_P(CudaMemory, AnotherThreadsFreedBlockIsNotTakenFromItsStream) {
  Allocator& a = allocator(GetParam());
  constexpr int64_t kBytes = 12345678;
  void* mine = a.take(kBytes);
  a.give(mine, kBytes);
  void* other = nullptr;
  std::thread([&] { other = a.take(kBytes), a.give(other, kBytes); }).join();
  EXPECT_NE(other, mine);  // `mine` waits in my stream's list
  EXPECT_EQ(a.take(kBytes), mine);
  EXPECT_EQ(a.take(kBytes), other);  // its thread and stream have ended, so it serves any stream
  a.give(mine, kBytes), a.give(other, kBytes);
}

// One thread's stream fills a block while the block's owner fills blocks that it allocates:
// values must not mix.
TEST_P(CudaMemory, ABlockFreedElsewhereWaitsForTheWorkThere) {
  constexpr int64_t kMany = 1 << 24;
  // On the emulated device one try shows it.
  const bool chance = describe(GetParam()).find("emulated") == std::string::npos;
  for (int repeat = 0; repeat < (chance ? 20 : 1); ++repeat) {
    Tensor x({kMany}, kF32, GetParam());
    Event written = current_stream(GetParam()).record();
    Tensor copy_of_x;
    std::thread user([&] {
      Stream& s = current_stream(GetParam());
      s.wait(written);
      fill(x, 1.f);
      for (int i = 0; i < 50; ++i) scale(x, 1.f);  // long work
      copy_of_x = x.clone();
      x = {};                                     // freed here, its work still queued
      const Tensor y({kMany}, kF32, GetParam());  // on this stream: another block
      s.sync();
    });
    user.join();
    const Tensor z({kMany}, kF32, GetParam());  // may be x's block again
    fill(z, 2.f);
    EXPECT_EQ(values(copy_of_x.view({1}))[0], 1.0);
    EXPECT_EQ(values(copy_of_x.view({1}, kMany - 1))[0], 1.0);
  }
}

TEST_P(CudaMemory, EventsOrderStreams) {
  Stream second(GetParam());
  Tensor x = Tensor::zeros({1 << 22}, kF32, GetParam());
  for (int i = 0; i < 100; ++i) axpy(x, 1.f, x);  // zeros stay zeros
  fill(x, 3.f);
  const Event filled = current_stream(GetParam()).record();
  second.wait(filled);
  const Event after = second.record();
  after.sync();
  EXPECT_TRUE(filled.ready());
  EXPECT_EQ(values(x.view({1}))[0], 3.0);
}

TEST_P(CudaMemory, AnUrgentStreamHasTheHighestPriorityAndOthersTheLowest) {
  int lowest = 0, highest = 0, usual = 0, urgent = 0;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&lowest, &highest), cudaSuccess);
  const Stream one(GetParam()), other = urgent_stream(GetParam());
  ASSERT_EQ(cudaStreamGetPriority(static_cast<cudaStream_t>(one.handle()), &usual), cudaSuccess);
  ASSERT_EQ(cudaStreamGetPriority(static_cast<cudaStream_t>(other.handle()), &urgent), cudaSuccess);
  EXPECT_EQ(usual, lowest);
  EXPECT_EQ(urgent, highest);
  EXPECT_LT(highest, lowest);  // in CUDA's order
}

TEST_P(CudaMemory, PinnedMemoryCarriesBytesBothWays) {
  Tensor host({1 << 20}, kF32, pinned_allocator()), back({1 << 20}, kF32, pinned_allocator());
  for (int64_t i = 0; i < host.size(); ++i) host.data<float>()[i] = float(i);
  const Tensor there = host.to(GetParam());
  copy_bytes(back, there);
  current_stream(GetParam()).sync();
  for (int64_t i = 0; i < host.size(); ++i) ASSERT_EQ(back.data<float>()[i], float(i));
}

TEST_P(CudaMemory, MemoryIsGivenBackWhenThereIsNoMore) {
  Allocator& a = allocator(GetParam());
  int64_t bytes = int64_t(1) << 30;
  try {  // ever new sizes, each freed at once: cached blocks must be released for the next
    for (;; bytes += bytes / 4) a.give(a.take(bytes), bytes);
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("out of memory"), std::string::npos) << e.what();
  }
  release_cached(GetParam());
  EXPECT_THROW(a.take(bytes), Error);  // it was too much even with nothing cached
}

}  // namespace
}  // namespace skein
