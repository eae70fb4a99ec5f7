// What threads leave on an emulated device: contexts and errors.
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <thread>

#include "engine/vectors/packets.h"
#include "engine/vectors/vec.h"
#include "tests/emulated/launch.h"

namespace skein {
namespace {

struct Nothing {
  void operator()(int64_t) const {}
};

// Each of several workers on one host has its own device; a thread that stayed on device 0 would take
// memory of another worker's.
TEST(EmulatedPlaces, AllThreadsStayOnTheDeviceOfTheirProcess) {
  const Device second{Device::kCuda, 1};
  const Tensor x = Tensor::zeros({100}, kF32, second);
  const Event done = current_stream(second).record();
  Tensor pinned;
  std::thread([&] { pinned = Tensor({100}, kF32, pinned_allocator()); }).join();
  std::thread([&] { done.sync(); }).join();
  std::thread([&] { EXPECT_TRUE(done.ready()); }).join();
  copy_bytes(pinned, x);
  current_stream(second).sync();
  EXPECT_EQ(pinned.data<float>()[99], 0);
  EXPECT_EQ(emulated::devices_in_use(), std::vector<int>{1});
}

TEST(EmulatedPlacesDeathTest, AKernelIsLaunchedOnTheThreadsDevice) {
  const Device second{Device::kCuda, 1};
  void* const stream = current_stream(second).handle();
  const auto launch = [&] { cudaSetDevice(0), emulated::each(stream, 1, Nothing{}); };
  EXPECT_EXIT(launch(), ::testing::ExitedWithCode(3), "another device");
}

TEST(EmulatedPlaces, PinnedMemoryThatIsNotThereIsNoTroubleOfTheNextKernel) {
  const Device second{Device::kCuda, 1};
  EXPECT_THROW(Tensor({int64_t(1) << 38}, kF32, pinned_allocator()), Error);
  const Tensor x({10}, kF32, second);
  fill(x, 1.f);
  EXPECT_EQ(x.view({1}, 9).item(), 1);
}

struct Pairs {
  Pack<float, 4>* to;
  void operator()(int64_t i) const { to[i] = Pack<float, 4>{}; }
};
TEST(EmulatedPlacesDeathTest, WhatIsLoadedAtOnceIsAligned) {
  const Device second{Device::kCuda, 1};
  const Tensor x = Tensor::zeros({100}, kF32, second);
  const auto store = [&](int64_t at) {
    float* const first = x.view({8}, at).data<float>();
    emulated::each(current_stream(second).handle(), 2, Pairs{reinterpret_cast<Pack<float, 4>*>(first)});
    current_stream(second).sync();
  };
  store(4);
  EXPECT_EXIT(
      store(1), [](int status) { return WIFSIGNALED(status); }, "");
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  setenv("SKEIN_EMULATED_GPUS", "2", 1);  // asked once
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
