// Clipping to a norm.
#include "engine/vectors/clip.h"

#include <limits>

#include "engine/vectors/vec.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

class Clip : public OnDevice {
 protected:
  Tensor there(const Tensor& x) const { return x.to(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, Clip, kDevices, device_name);

TEST_P(Clip, ALongVectorIsScaledToTheNormAskedForAndAShortOneKeepsItsBits) {
  constexpr int64_t kN = 70001;
  for (const double most : {0.01, 3.0, 1e6}) {
    const Tensor g = there(random_uniform({kN}, 1)), before = g.clone();
    const double length = norm(g);
    clip_by_norm(g, most);
    if (most > length) {
      EXPECT_EQ(values(g), values(before));
      continue;
    }
    EXPECT_NEAR(norm(g), most, 1e-5 * most);
    std::vector<double> want = values(before);
    for (double& v : want) v *= most / length;
    EXPECT_TRUE(allclose(g, want));
  }
}

TEST_P(Clip, WhatIsNoNumberIsSeenAfterClipping) {
  const Tensor host = random_uniform({100}, 1);
  host.data<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  const Tensor g = there(host);
  clip_by_norm(g, 1);
  EXPECT_FALSE(all_finite(g));
}

}  // namespace
}  // namespace skein
