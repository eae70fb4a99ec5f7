// The UCX transport between real processes: sums, messages, deaths, disagreements.
#include "tests/roles.h"

namespace skein::comm {
namespace {

TEST(Ucx, SumsInRankOrderWithBitsOfTheReference) {
  for (int n : {1, 2, 3, 4}) {
    Processes p("sum", n, "ucx");
    expect_all_end_well(p);
  }
}
TEST(Ucx, MessagesOfAllSizesArriveInTheirShape) {
  Processes p("pass", 2, "ucx");
  expect_all_end_well(p);
}
TEST(Ucx, AKilledPeerIsNamedWithinASecond) {
  Processes p("lose", 3, "ucx");
  EXPECT_EQ(p.wait(1), 128 + SIGKILL);
  EXPECT_EQ(p.wait(0, 5), 0);
  EXPECT_EQ(p.wait(2, 5), 0);
}
TEST(Ucx, AStoppedPeerIsNamedBySilenceOrDeadline) {
  for (const char* how : {"ucx/silence", "ucx/deadline"}) {
    Processes p("stop", 3, how);
    EXPECT_EQ(p.wait(0, 10), 0) << how;
    EXPECT_EQ(p.wait(2, 10), 0) << how;
  }
}
TEST(Ucx, DisagreementIsAnErrorOnBothEnds) {
  for (const char* what : {"epoch", "bytes", "layout", "step", "collective"}) {
    Processes p("disagree", 2, std::string("ucx/") + what);
    for (Rank r : {0, 1}) EXPECT_EQ(p.wait(r), 0) << what << " at rank " << r;
  }
}

}  // namespace
}  // namespace skein::comm

int main(int argc, char** argv) { return skein::comm::main_with_roles(argc, argv); }
