// The memory of recorded work: it stays in place, is as large as the recording made it, and goes back
// in the end.
#include "engine/device/memory_pool.h"

#include "engine/device/graph.h"
#include "engine/device/memory.h"
#include "engine/vectors/vec.h"
#include "tests/engine/device/recordings.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;
using Way = Recorded::Way;

class MemoryPools : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, MemoryPools, kDevices, device_name);

TEST_P(MemoryPools, ThePoolStaysAsLargeAsTheRecordingMadeIt) {
  const Device d = GetParam();
  const Tensor x({5000}, kF32, d), out({5000}, kF32, d);
  fill(x, 2.f);
  Recorded work(d, "a chain");
  const auto body = [&] {
    Tensor y = x;
    for (int i = 0; i < 50; ++i) y = add(y, x);  // each link frees the one before
    copy(out, y);
  };
  work.run({}, body);
  const int64_t after_warm_up = bytes_of(work.memory());
  const MemoryUse before = memory_use(d);
  for (int i = 0; i < 5; ++i) work.run({}, body);
  EXPECT_EQ(bytes_of(work.memory()), after_warm_up);
  EXPECT_LE(after_warm_up, 4 * 5000 * 4 * 5 / 4);
  EXPECT_EQ(memory_use(d).now, before.now);
  EXPECT_EQ(values(out)[0], 102);
}

TEST_P(MemoryPools, WhatOutlivesItsPoolGoesBackInTheEnd) {
  const Device d = GetParam();
  const MemoryUse before = memory_use(d);
  {
    Tensor kept;
    {
      MemoryPool pool(d);
      const MemoryPool::Use in(&pool);
      kept = Tensor({1000}, kF32, d);
      const Tensor other({3000}, kF32, d);
    }
    fill(kept, 1.f);
    EXPECT_EQ(values(kept)[999], 1);
    EXPECT_GT(memory_use(d).now, before.now);
  }
  EXPECT_EQ(memory_use(d).now, before.now);
}

// A replay would go on using memory that has other owners by then.
TEST_P(MemoryPools, MemoryFromBeforeIsNotGivenBackInARecording) {
  const Device d = GetParam();
  const Tensor out({1000}, kF32, d);
  Tensor old({1000}, kF32, d);
  fill(old, 5.f);
  const int64_t before = memory_use(d).now;
  Recorded work(d, "the body");
  const auto body = [&] {
    if (old) copy(out, old);
    if (records(d)) old = Tensor();
    scale(out, 2.f);
  };
  work.run({}, body);
  EXPECT_THROW(work.run({}, body), Error);
  EXPECT_FALSE(records(d));
  EXPECT_LT(memory_use(d).now, before);
  const Tensor other({1000}, kF32, d);  // may get the block that was freed
  for (int run = 0; run < 3; ++run) fill(other, 7.f), work.run({}, body);
  EXPECT_EQ(work.refused(), "");
  EXPECT_EQ(values(out)[999], 80);
}

// A replay would start from the state of the recorded run each time.
struct Limit {
  const Device d;
  Limit(Device d, int64_t bytes) : d(d) { limit_memory(d, bytes); }
  ~Limit() { limit_memory(d, 0); }
};
// On a GPU freeing waits for the device, which would break the recording.
TEST_P(MemoryPools, MemoryThatIsMissingIsFreedBehindTheRecording) {
  const Device d = GetParam();
  release_cached(d);
  const Tensor y = Tensor::zeros({1000}, kF32, d);
  Recorded work(d, "growth");
  int64_t rows = 1000;
  const auto body = [&] {
    const Tensor large({rows}, kF32, d);
    fill(large, 5.f);
    copy(y, large.view({1000}));
  };
  work.run({}, body);
  constexpr int64_t kUnused = 20 << 20;
  { const Tensor unused({kUnused}, kU8, d); }
  // There is room for what the body asks for only where `unused` was.
  const Limit limit(d, memory_use(d).now + kUnused + (1 << 20));
  rows = 4 << 20;
  EXPECT_EQ(work.run({}, body), Recorded::Way::kRecorded) << work.refused();
  EXPECT_EQ(values(y)[999], 5);
  fill(y, 0.f);
  EXPECT_EQ(work.run({}, body), Recorded::Way::kReplayed);
  EXPECT_EQ(values(y)[999], 5);
  rows = 64 << 20;
  work.run({1}, [] {});
  EXPECT_THROW(work.run({1}, body), OutOfMemory);
}

}  // namespace
}  // namespace skein
