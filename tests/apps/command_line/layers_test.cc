// Each layer of a configuration goes over the one before.
#include "apps/command_line/layers.h"

#include "tests/support/reads_flags.h"

namespace skein::apps {
namespace {

using Layers = ReadsFlags;

TEST_F(Layers, CommandLineGoesOverFileGoesOverDefault) {
  const std::string toml = file("lr = 0.5\nbatch-size = 32\nnesterov = false\ndata = \"mnist:/there\"\n");
  const Config c = parse({"--config", toml, "--batch-size", "16"}).config;
  EXPECT_EQ(c.lr, 0.5);
  EXPECT_EQ(c.batch_size, 16);
  EXPECT_FALSE(c.nesterov);
  EXPECT_EQ(c.data, "mnist:/there");
  EXPECT_EQ(c.momentum, Config().momentum);
}

}  // namespace
}  // namespace skein::apps
