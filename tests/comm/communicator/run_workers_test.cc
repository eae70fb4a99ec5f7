// Workers as threads: who they are, and what is heard of the one that fails.
#include "comm/communicator/run_workers.h"

#include <gtest/gtest.h>

#include <array>

namespace skein::comm {
namespace {

TEST(RunWorkers, EachRankWorksOnceAmongAll) {
  std::array<std::atomic<int>, 4> worked{};
  run_workers(4, [&](Communicator& c) {
    ++worked[size_t(c.rank())];
    const Tensor one = Tensor::of<int32_t>({1}, {1});
    c.all_reduce(one).wait();
    EXPECT_EQ(one.data<int32_t>()[0], 4);
    EXPECT_FALSE(c.options().key.empty()) << "servers need one";
  });
  for (const auto& n : worked) EXPECT_EQ(n, 1);
}

// Workers that wait for the one that failed see it leave after that.
TEST(RunWorkers, TheCauseIsThrownAndNotWhatFollowsFromIt) {
  for (const Rank culprit : {0, 2}) try {
      run_workers(3, [&](Communicator& c) {
        if (c.rank() == culprit) throw BadFile("the cause");
        c.take(culprit, 1, 0);
      });
      FAIL();
    } catch (const Error& e) { EXPECT_STREQ(e.what(), "the cause"); }
}

}  // namespace
}  // namespace skein::comm
