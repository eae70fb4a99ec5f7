// What the host says of itself and of its processes.
#include "apps/base/host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/files.h"

namespace skein::apps {
namespace {

using testing::ScratchDir;
using testing::spill;

TEST(Host, AProcessHasAStateAndOneThatIsNotThereHasNone) {
  EXPECT_EQ(process_state(getpid()).substr(0, 2), "R ");
  EXPECT_EQ(process_state(-1), "");
}

TEST(Host, ValuesAreFoundBehindColonOrEqualsSign) {
  const ScratchDir dir;
  spill(dir / "f", "flags\nflags\t: a b \nNAME=\"Linux 12\"\nempty:\nlast: x=1:2");
  const std::string file = dir / "f";
  EXPECT_EQ(value_in(file.c_str(), "flags"), "a b");
  EXPECT_EQ(value_in(file.c_str(), "NAME"), "Linux 12");
  EXPECT_EQ(value_in(file.c_str(), "empty"), "");
  EXPECT_EQ(value_in(file.c_str(), "last"), "x=1:2");
  EXPECT_EQ(value_in(file.c_str(), "none"), "");
  EXPECT_EQ(value_in("/nowhere", "last"), "");
}

}  // namespace
}  // namespace skein::apps
