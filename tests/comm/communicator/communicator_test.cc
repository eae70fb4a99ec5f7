// Handlers of a communicator.
#include "comm/communicator/communicator.h"

#include "tests/support/files.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

using testing::message_of;

TEST(Handlers, AnswerWhileTheirRankComputes) {
  in_local_world(3, [](Communicator& c) {
    std::atomic<int> served{0};
    if (c.rank() == 0)
      c.on(5, [&](const Message& m) {
        c.push(m.from, 5, m.step, 1, ones(1, 10 * m.payload.data<float>()[0]));
        ++served;
      });
    if (c.rank() > 0)
      for (int64_t k = 0; k < 50; ++k) {
        c.push(0, 5, k, 1, ones(1, float(k)));
        ASSERT_EQ(*c.take(0, 5, k).payload.data<float>(), float(10 * k));
      }
    else
      while (served < 100) std::this_thread::yield();  // computes, and never takes
    c.barrier();
  });
}

TEST(Handlers, HaveTheirErrorsThrownByTheNextWait) {
  in_local_world(2, [](Communicator& c) {
    if (c.rank() == 0) {
      c.on(5, [](const Message&) { throw Error("cannot be served"); });
      EXPECT_NE(message_of<Error>([&] { c.take(1, 1, 0); }).find("cannot be served"), std::string::npos);
    } else {
      c.push(0, 5, 0, 1, ones(1));
    }
  });
}

}  // namespace
}  // namespace skein::comm
