// Whether a GPU can be used, and what is missing.
#include "engine/device/device_use.h"

#include "engine/device/device_group.h"
#include "tests/support/testing.h"

namespace skein::comm {
namespace {

using namespace skein::testing;

class UsableDevice : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, UsableDevice, ::testing::Values(kFirstGpu), device_name);

TEST(DeviceUse, WithoutADeviceItSaysWhatIsMissing) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "skipped: there is a CUDA device";
  const std::string why = why_no_cuda();
  EXPECT_NE(why.find("NVIDIA driver"), std::string::npos) << why;
  EXPECT_NE(why.find("--device cpu"), std::string::npos) << why;
  EXPECT_THROW(require_usable(kFirstGpu), Error);
  EXPECT_NO_THROW(require_usable(kCpu));
}

TEST_P(UsableDevice, TheDeviceCanBeUsedAndDescribed) {
  EXPECT_NO_THROW(require_usable(GetParam()));
  EXPECT_THROW(require_usable({Device::kCuda, cuda_device_count()}), Error);
  EXPECT_NE(describe(GetParam()).find("cuDNN"), std::string::npos) << describe(GetParam());
  EXPECT_EQ(identity_of(GetParam()).size(), 16u);
}

}  // namespace
}  // namespace skein::comm
