// The transports between real processes, shared memory and UCX: sums, messages, deaths, disagreements.
#include <cstring>

#include "comm/notice.h"
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

void send_a_letter(Exchange& e, const std::string& word) {
  const auto t = connect(e, way(word));
  Communicator c(*t, in_seconds(20));
  const Tensor words({kLongestNotice}, kU8);
  std::memset(words.raw(), 'x', size_t(kLongestNotice));
  if (c.rank() == 0) {
    t->to(1).send(notice(Kind::kLetter, 0, c.membership().epoch(), words), words, after(5));
    c.take(1, 3, 0);
    return;
  }
  std::vector<Message> letters;
  for (const auto until = after(10); letters.empty() && Clock::now() < until;) {
    t->progress();
    letters = t->mailbox().take_letters();
  }
  CHECK(letters.size() == 1 && letters[0].payload.size() == kLongestNotice, letters.size());
  CHECK(letters[0].payload.data<uint8_t>()[kLongestNotice - 1] == 'x');
  c.push(0, 3, 0, 1, Tensor::zeros({1}));
}
const AddRole kLetter("letter", send_a_letter);

TEST_P(BetweenProcesses, TheLongestLetterArrives) {
  Processes p("letter", 2, GetParam());
  expect_all_end_well(p);
}

}  // namespace
}  // namespace skein::comm
