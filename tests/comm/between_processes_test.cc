// The transports between real processes, shared memory and UCX: sums, messages, deaths, disagreements.
#include "tests/support/files.h"
#include "tests/support/roles.h"

namespace skein::comm {
namespace {

class BetweenProcesses : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Way, BetweenProcesses, ::testing::Values("shared", "tcp", "ucx"),
                         [](const auto& way) { return way.param; });

TEST_P(BetweenProcesses, SumsInRankOrderWithBitsOfTheReference) {
  for (int n : {1, 2, 3, 4}) {
    Processes p("sum", n, GetParam());
    expect_all_end_well(p);
  }
}
TEST_P(BetweenProcesses, MessagesOfAllSizesArriveInTheirShape) {
  Processes p("pass", 2, GetParam());
  expect_all_end_well(p);
}
// In shared memory messages lie where their reader finds them, whatever becomes of the sender.
TEST(LastWords, HaveArrivedWhenTheirRankEnds) {
  for (const std::string way : {"tcp", "ucx"}) {
    const skein::testing::ScratchDir folder;
    Processes p("last words", 2, way + (folder / "ended"));
    expect_all_end_well(p);
  }
}
TEST_P(BetweenProcesses, AKilledPeerIsNamedAtOnce) {
  Processes p("lose", 3, GetParam());
  EXPECT_EQ(p.wait(1), 128 + SIGKILL);
  EXPECT_EQ(p.wait(0, 5), 0);
  EXPECT_EQ(p.wait(2, 5), 0);
}
TEST_P(BetweenProcesses, AStoppedPeerIsNamedBySilenceOrDeadline) {
  for (const char* how : {"/silence", "/deadline"}) {
    Processes p("stop", 3, GetParam() + how);
    EXPECT_EQ(p.wait(0, 10), 0) << how;
    EXPECT_EQ(p.wait(2, 10), 0) << how;
  }
}
TEST_P(BetweenProcesses, DisagreementIsAnErrorOnBothEnds) {
  for (const char* what : {"epoch", "bytes", "layout", "step", "collective"}) {
    Processes p("disagree", 2, GetParam() + "/" + what);
    for (Rank r : {0, 1}) EXPECT_EQ(p.wait(r), 0) << what << " at rank " << r;
  }
}

}  // namespace
}  // namespace skein::comm
