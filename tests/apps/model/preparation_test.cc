// Preparations as metadata: they read back to the bit, and malformed ones are refused with the file's name.
#include "apps/model/preparation.h"

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace skein::apps {
namespace {

TEST(Preparation, ReadsBackToTheBit) {
  Preparation whole{.image = {28, 32, 1}, .center = false, .mean = {1.f / 3}, .deviation = {1e-30f}};
  for (const Preparation& p : {imagenet_preparation(224), whole}) {
    const auto back = read_preparation("file", to_metadata(p));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->image.height, p.image.height);
    EXPECT_EQ(back->image.width, p.image.width);
    EXPECT_EQ(back->image.channels, p.image.channels);
    EXPECT_EQ(back->center, p.center);
    EXPECT_EQ(back->mean, p.mean);
    EXPECT_EQ(back->deviation, p.deviation);
  }
}

TEST(Preparation, IsNoneWhereTheMetadataHaveNone) {
  EXPECT_FALSE(read_preparation("file", {}));
  EXPECT_FALSE(read_preparation("file", {{"view", "center"}, {"mean", "[1]"}}));
}

TEST(Preparation, IsRefusedWhenMalformed) {
  const std::pair<const char*, const char*> changes[] = {{"image", "224x224"},
                                                         {"image", "0x224x3"},
                                                         {"image", "224x-1x3"},
                                                         {"image", "224x224x2"},
                                                         {"image", "224x224x3x"},
                                                         {"image", "224x224x1"},
                                                         {"view", "left"},
                                                         {"view", ""},
                                                         {"mean", "[0.5, 0.5]"},
                                                         {"mean", "0.5"},
                                                         {"mean", "[0.5,"},
                                                         {"mean", "[1, 2, \"3\"]"},
                                                         {"std", "[1, 1, 0]"},
                                                         {"std", "[1, 1, -1]"},
                                                         {"std", ""}};
  for (const auto& [key, value] : changes) {
    auto metadata = to_metadata(imagenet_preparation(224));
    metadata[key] = value;
    const std::string said = testing::message_of<BadFile>([&] { read_preparation("some/file", metadata); });
    EXPECT_TRUE(said.starts_with("some/file: damaged")) << key << ' ' << value << ": " << said;
  }
}

}  // namespace
}  // namespace skein::apps
