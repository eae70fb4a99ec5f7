// Work that succeeds on all workers or fails on all: one fault is one message, of the same kind everywhere.
#include "apps/base/together.h"

#include <atomic>

#include "tests/support/files.h"
#include "tests/support/world.h"

namespace skein::apps {
namespace {

using comm::Communicator;
using comm::in_local_world;
using testing::message_of;

TEST(Together, AllGoOnWhereNoneFails) {
  std::atomic<int> done{0};
  in_local_world(3, [&](Communicator& c) { together(c, [&] { ++done; }); });
  EXPECT_EQ(done, 3);
}

TEST(Together, TheErrorOfTheLowestWorkerIsThatOfAll) {
  in_local_world(4, [](Communicator& c) {
    const auto work = [&] {
      if (c.rank() == 1) throw BadFile("what worker 1 says");
      if (c.rank() == 3) throw BadOption("what worker 3 says");
    };
    try {
      together(c, work);
      ADD_FAILURE() << "rank " << c.rank() << " went on";
    } catch (const BadFile& e) {
      EXPECT_STREQ(e.what(), "what worker 1 says");
      EXPECT_TRUE(is_of_all(e, c));
    }
    EXPECT_FALSE(is_of_all(Error("one's own"), c));
  });
}

TEST(Together, TheKindOfAnErrorIsKept) {
  in_local_world(2, [](Communicator& c) {
    const auto on_rank_zero = [&](auto error) {
      return [&c, error] {
        together(c, [&] {
          if (c.rank() == 0) throw error;
        });
      };
    };
    EXPECT_EQ(message_of<BadOption>(on_rank_zero(BadOption("a flag"))), "a flag");
    EXPECT_EQ(message_of<BadFile>(on_rank_zero(BadFile("a file"))), "a file");
    EXPECT_EQ(message_of<Error>(on_rank_zero(Error("another"))), "another");
  });
}

TEST(Together, AWorkerAloneThrowsItsOwn) {
  in_local_world(1, [](Communicator& c) {
    const auto f = [&] { together(c, [] { throw BadOption("its own"); }); };
    EXPECT_EQ(message_of<BadOption>(f), "its own");
    EXPECT_TRUE(is_of_all(Error("any"), c));
  });
}

}  // namespace
}  // namespace skein::apps
