// Which worker gets which GPU, and the numerics of devices.
#include "apps/launch/device_choice.h"

#include "engine/numerics.h"
#include "tests/support/program.h"
#include "tests/support/says.h"

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
TEST(DeviceChoice, SumsThatLeaveTheHostInClearAreNamedAmongTheWays) {
  const std::string ways = "rank 1: tcp, sealed with AES-256-GCM\n";
  const std::string sums = "sums between GPUs go through NCCL 2.18";
  EXPECT_EQ(with_sums(ways, sums), ways);
  EXPECT_EQ(with_sums(ways, ""), ways);
  EXPECT_SAYS(with_sums(ways, sums + "; between hosts they are not sealed"), ways + sums);
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
