// What --plan foretells, as words and back.
#include "apps/config/predicted.h"

#include <gtest/gtest.h>

#include "engine/base.h"
#include "tests/support/reads_flags.h"

namespace skein::apps {
namespace {

using PredictedFlag = ReadsFlags;

TEST(Predicted, IsReadAsItIsWritten) {
  const Predicted p = {512.25, 0.93, 4.2e6};
  EXPECT_EQ(p.words(), "images/s=512.25,hidden=0.93,bytes/step=4.2e+06");
  const auto again = Predicted::parse(p.words());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->images_per_second, 512.25);
  EXPECT_EQ(again->hidden_share, 0.93);
  EXPECT_EQ(again->bytes_per_step, 4.2e6);
  const auto speed = Predicted::parse("images/s=0.5");
  EXPECT_EQ(speed->words(), "images/s=0.5");
  EXPECT_FALSE(speed->hidden_share || speed->bytes_per_step);
  EXPECT_FALSE(Predicted::parse(""));
}

TEST_F(PredictedFlag, IsCheckedAtTheStart) {
  for (const char* wrong : {"512", "images/s=", "images/s=0", "images/s=-1", "images/s=nan", "images/s=inf",
                            "images/s=5,hidden=1.1", "images/s=5,", "hidden=0.5", "images/s=5,waiting=0.1"})
    EXPECT_SAYS(refusal({"--predicted", wrong}), "is no prediction; --plan prints it") << wrong;
  EXPECT_EQ(refusal({"--predicted", "images/s=5,hidden=1"}), "");
}

}  // namespace
}  // namespace skein::apps
