// Clients of an inbox: which address they take, and what happens without an answer.
#include "comm/inbox/inbox_client.h"

#include <gtest/gtest.h>

#include "comm/inbox/inbox.h"
#include "tests/support/keys.h"
#include "tests/support/soon.h"

namespace skein::comm {
namespace {

TEST(InboxClient, TakesTheFirstAddressThatAnswers) {
  Inbox inbox({.key = kKey, .workers = 1});
  Invitation i = inbox.invitation();
  i.addresses = {"192.0.2.1", "nonsense", "127.0.0.1"};
  InboxClient c(Invitation::read(i.words()), kKey, 0);
  EXPECT_NO_THROW(c.ask(3));
  EXPECT_EQ(inbox.next(soon())->kind, 3);
}

TEST(InboxClient, SaysWhenNobodyAnswers) {
  Invitation i;
  {
    Inbox inbox({.key = kKey, .workers = 1});
    i = inbox.invitation();
    InboxClient stranger(i, kOther, 0);
    EXPECT_THROW(stranger.ask(1, 0, 0.1), Timeout);
  }
  InboxClient c(i, kKey, 0);
  EXPECT_THROW(c.ask(1, 0, 0.1), Timeout);
  EXPECT_GT(c.repeats(), 1);
  EXPECT_THROW(Invitation::read("garbage"), Error);
  EXPECT_THROW(Invitation::read("inbox zz 1"), Error);
}

}  // namespace
}  // namespace skein::comm
