// Patience: a deadline that is restored.
#include "comm/communicator/patience.h"

#include "comm/clock.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

TEST(Patiences, EndWithTheirScopeHoweverThatIsLeft) {
  in_local_world(1, [](Communicator& c) {
    try {
      const Patience patience(c);
      EXPECT_EQ(c.options().deadline, kForever);
      throw Error("out of here");
    } catch (const Error&) {}
    EXPECT_EQ(c.options().deadline, 20);
  });
}

}  // namespace
}  // namespace skein::comm
