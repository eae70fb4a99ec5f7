// Which worker gets which GPU, the messages about unusable ones, and running out of memory.
#include "apps/launch/device_choice.h"

#include "apps/command_line.h"
#include "apps/setup/memory_advice.h"
#include "engine/device/device_trouble.h"
#include "engine/device/memory.h"
#include "engine/numerics.h"
#include "tests/support/program.h"
#include "tests/support/testing.h"

namespace skein::apps {
namespace {

using skein::testing_programs::Ended;
using skein::testing_programs::Workplace;

Config with_device(const std::string& device) {
  Config c;
  c.device = device;
  return c;
}
void fine(Device) {}
Device dealt(const std::string& said, int local_rank, int gpus) {
  return deal_device(with_device(said), local_rank, gpus, fine).device;
}
Device gpu(int i) { return {Device::kCuda, i}; }

template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const BadOption& e) { return e.what(); }
  return "";
}
#define EXPECT_SAYS(said, part) EXPECT_NE((said).find(part), std::string::npos) << said

TEST(DeviceChoice, WorkersOfAHostTakeTurns) {
  for (const char* said : {"auto", "cuda"})
    for (int r = 0; r < 8; ++r) {
      EXPECT_EQ(dealt(said, r, 4), gpu(r % 4));
      EXPECT_EQ(dealt(said, r, 1), gpu(0));  // several share one
    }
}
TEST(DeviceChoice, ANamedGpuIsEverybodys) {
  for (int r = 0; r < 3; ++r) EXPECT_EQ(dealt("cuda:2", r, 4), gpu(2));
}
TEST(DeviceChoice, CpuIsAskedForOrAllThereIs) {
  EXPECT_EQ(dealt("cpu", 0, 4), kCpu);
  EXPECT_EQ(dealt("auto", 0, 0), kCpu);
}
TEST(DeviceChoice, AutoSaysWhyItLeavesAGpuAlone) {
  const auto broken = [](Device) { throw Error("cuDNN cannot be loaded"); };
  const DeviceChoice chosen = deal_device(with_device("auto"), 0, 1, broken);
  EXPECT_EQ(chosen.device, kCpu);
  EXPECT_SAYS(chosen.note, "cuDNN cannot be loaded");
  EXPECT_SAYS(refusal([&] { deal_device(with_device("cuda"), 0, 1, broken); }),
              "--device: cuDNN cannot be loaded");
}
TEST(DeviceChoice, OtherWordsAreRefused) {
  for (const char* said : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda1", "cuda:1x"})
    EXPECT_SAYS(refusal([&] { gpu_of(with_device(said)); }), "--device: there is no '") << said;
}
TEST(DeviceChoice, ACpuBuildSaysHowToBuild) {
  if (kHasCuda) GTEST_SKIP() << "skipped: this is a CUDA build";
  const std::string said = refusal([] { choose_device(with_device("cuda"), {}); });
  EXPECT_SAYS(said, "built without CUDA");
  EXPECT_SAYS(said, "cmake --preset cuda");
}

TEST(DeviceTrouble, EveryStateOfTheDriverSaysWhatToInstall) {
  const auto said = [](DriverLook::State s, int driver) {
    return trouble_with(DriverLook{s, driver, 13000, "unknown error"});
  };
  EXPECT_EQ(said(DriverLook::kWorks, 13000), "");
  EXPECT_SAYS(said(DriverLook::kMissing, 0), "libcuda.so.1 is not to be found");
  EXPECT_SAYS(said(DriverLook::kMissing, 0), "release 580 or later");
  EXPECT_SAYS(said(DriverLook::kTooOld, 12040),
              "it can run CUDA 12.4, and this program was built with CUDA 13.0");
  EXPECT_SAYS(said(DriverLook::kTooOld, 12040), "release 580 or later");
  EXPECT_SAYS(trouble_with(DriverLook{DriverLook::kTooOld, 11080, 12020, ""}), "release 525 or later");
  EXPECT_SAYS(said(DriverLook::kNoDevice, 13000), "sees no GPU");
  EXPECT_SAYS(said(DriverLook::kOther, 13000), "unknown error");
  for (auto s : {DriverLook::kMissing, DriverLook::kTooOld, DriverLook::kNoDevice, DriverLook::kOther})
    EXPECT_SAYS(said(s, 12040), "--device cpu");
}

TEST(DeviceTrouble, KnowsWhichCodeRunsWhere) {
  const auto runs = [](int major, int minor, const char* built) {
    return can_run(DeviceLook{"GPU", major, minor}, built);
  };
  EXPECT_TRUE(runs(8, 0, "80 90"));
  EXPECT_TRUE(runs(8, 6, "80 90"));
  EXPECT_TRUE(runs(12, 0, "80 90"));  // compiled by the driver from the portable form
  EXPECT_FALSE(runs(7, 5, "80 90"));
  EXPECT_FALSE(runs(10, 0, "90-real"));
  EXPECT_TRUE(runs(10, 0, "90-virtual"));
  EXPECT_TRUE(runs(9, 0, "90a"));
  EXPECT_FALSE(runs(10, 0, "90a"));
  EXPECT_FALSE(runs(8, 0, "86"));
  const std::string said = trouble_with(DeviceLook{"NVIDIA T4", 7, 5}, "80 90");
  EXPECT_SAYS(said, "NVIDIA T4 has compute capability 7.5, and this program holds code for 8.0, 9.0");
  EXPECT_SAYS(said, "-DSKEIN_CUDA_ARCHITECTURES=75");
  EXPECT_SAYS(trouble_with(DeviceLook{"Tesla V100", 7, 0}, "80 90"), "use another GPU");
}

TEST(DeviceTrouble, BytesAreWords) {
  EXPECT_EQ(bytes_in_words(999), "999 bytes");
  EXPECT_EQ(bytes_in_words(723072), "723 kB");
  EXPECT_EQ(bytes_in_words(411041792), "411 MB");
  EXPECT_EQ(bytes_in_words(139800000000), "139.8 GB");
}

TEST(Numerics, AreWhatTheFlagsSay) {
  Config c;
  c.tf32 = true, c.autotune = true;
  prepare_engine(c, kCpu);
  EXPECT_TRUE(numerics().tf32 && numerics().measure && !numerics().deterministic);
  EXPECT_EQ(describe_numerics(), "f32 products in tf32, autotuned");
  c.tf32 = c.autotune = false, c.deterministic = true;
  prepare_engine(c, kCpu);
  EXPECT_EQ(describe_numerics(), "f32 is f32, deterministic");
  prepare_engine(Config(), kCpu);
}

// A limit simulates a small device.
TEST(OutOfMemory, NamesTheTensorWhatItIsForAndWhatThereIs) {
  release_cached(kCpu);
  limit_memory(kCpu, memory_held(kCpu) + (8 << 20));
  try {
    const MemoryFor what("the forward pass");
    const Tensor fits({1 << 18}), large({4, 1024, 1024}, kBF16);
    ADD_FAILURE() << "it should not fit";
  } catch (const OutOfMemory& e) {
    const std::string said = e.what();
    EXPECT_SAYS(said, "out of memory on cpu: a tensor bf16 [4,1024,1024] of 8 MB for the forward pass");
    EXPECT_EQ(e.asked, 8 << 20);
    EXPECT_GT(e.in_use, 0);
    EXPECT_GT(e.room, e.in_use);
  }
  const Tensor one({1 << 20}), half({1 << 19});  // cached blocks are released first
  limit_memory(kCpu, 0);
  const Tensor enough({1 << 24});
}

TEST(OutOfMemory, PeaksCanBeForgotten) {
  { const Tensor large({1 << 22}); }
  reset_peak(kCpu);
  const MemoryUse before = memory_use(kCpu);
  EXPECT_EQ(before.peak, before.now);
  { const Tensor small({1 << 16}); }
  EXPECT_EQ(memory_use(kCpu).peak, before.now + (1 << 18));
}

TEST(BatchThatFits, FollowsTheRoom) {
  EXPECT_EQ(batch_that_fits(64, 256, 100, 740, 2500), 224);  // 10 each: 225, rounded down to a multiple of 8
  EXPECT_EQ(batch_that_fits(64, 128, 100, 740, 9999), 127);  // never what has failed
  EXPECT_EQ(batch_that_fits(64, 128, 100, 740, 700), 64);    // that much did fit
  EXPECT_EQ(batch_that_fits(2, 8, 0, 20, 100), 9 - 2);
}

TEST(OutOfMemory, ATrainingNamesABatchThatThenTrains) {
  const Workplace here;
  const std::string run =
      "$TRAIN --data synthetic:32x32x3,train=200,test=20 --model small-cnn --steps 1 --memory-limit 0.014 ";
  const Ended failed = here.run(run + "--batch-size 96 --output a");
  EXPECT_EQ(failed.status, 1) << failed.out << failed.err;
  EXPECT_SAYS(failed.err, "out of memory on cpu: a tensor ");
  EXPECT_SAYS(failed.err, " [96,");
  const auto number_after = [&](const std::string& flag) {
    const size_t at = failed.err.find(flag);
    return at == std::string::npos ? 0 : std::atoi(failed.err.c_str() + at + flag.size());
  };
  const int smaller = number_after("--batch-size "), passes = number_after("fits: --accumulate ");
  EXPECT_TRUE(smaller > 24 && smaller < 96 && passes == (96 + smaller - 1) / smaller) << failed.err;
  for (const std::string& way :
       {text("--batch-size ", smaller), text("--batch-size 96 --accumulate ", passes)}) {
    const Ended good = here.run(run + way + " --output b" + std::to_string(way.size()));
    EXPECT_EQ(good.status, 0) << way << '\n' << good.out << good.err;
  }
  EXPECT_SAYS(here.read(text("b", text("--batch-size ", smaller).size(), "/summary.json")),
              "\"numerics\": \"f32 is f32\"");
}

TEST(Flags, OfDeterminismContradictWhatRepeatsNothing) {
  const Workplace here;
  const std::string run =
      "$TRAIN --data synthetic:8x8x1,train=64,test=30 --model mlp --steps 1 --deterministic ";
  Ended e = here.run(run + "--autotune");
  EXPECT_EQ(e.status, 2) << e.out;
  EXPECT_SAYS(e.err, "leave out one of the two");
  e = here.run(run + "--workers 2 --algorithm downpour");
  EXPECT_EQ(e.status, 2) << e.out;
  EXPECT_SAYS(e.err, "--replay FILE repeats");
}

}  // namespace
}  // namespace skein::apps
