// The messages about GPUs that cannot be used.
#include "engine/device/device_trouble.h"
#include "tests/support/says.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

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

}  // namespace
}  // namespace skein
