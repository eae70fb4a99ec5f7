// Staging: tensors of the host pass through it.
#include "comm/communicator/staging.h"

#include <gtest/gtest.h>

#include <cstring>

namespace skein::comm {
namespace {

TEST(Staging, PassesTensorsOfTheHostThroughAndCopiesBack) {
  Staging staging;
  const Tensor x = Tensor::of<float>({2, 2}, {1, 2, 3, 4}), y({2, 2});
  const Staging::Landing landing = staging.down(x);
  EXPECT_EQ(landing.host.raw(), x.raw());
  EXPECT_EQ(landing.host.shape(), Shape({4}));
  EXPECT_TRUE(landing.ready.ready());
  staging.bring(y, landing.host);
  EXPECT_EQ(std::memcmp(y.raw(), x.raw(), 16), 0);
  EXPECT_EQ(staging.beside(kCpu, x).raw(), x.raw());
}

}  // namespace
}  // namespace skein::comm
