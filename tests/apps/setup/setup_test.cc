// What a training cannot be set up with.
#include "apps/setup/setup.h"

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace skein::apps {
namespace {

TEST(Setup, RefusesMoreImagesAStepThanThereAre) {
  Config c;
  c.data = "synthetic:8x8x1,classes=2,train=4,test=2";
  c.model = "mlp";
  c.algorithm = "local-sgd";
  const auto refusal = [&](int64_t each, int workers) {
    c.batch_size = each;
    Place place;
    place.world = workers;
    return testing::message_of<BadOption>([&] { open_setup(c, place); });
  };
  EXPECT_TRUE(refusal(3, 2).ends_with("; give 2 or less for each")) << refusal(3, 2);
  EXPECT_TRUE(refusal(1, 5).ends_with("; give --workers 4 or less")) << refusal(1, 5);
}

}  // namespace
}  // namespace skein::apps
