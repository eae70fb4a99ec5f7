// Words: what one or all ranks say is what all of them hear, bit for bit.
#include "comm/communicator/words.h"

#include <cmath>
#include <cstring>

#include "tests/support/world.h"

namespace skein::comm {
namespace {

TEST(Words, ATextOfAnyRankIsEverybodys) {
  for (const int n : {1, 2, 5})
    in_local_world(n, [&](Communicator& c) {
      for (Rank root = 0; root < n; ++root)
        for (const size_t length : {size_t(0), size_t(1), size_t(3000)}) {
          const std::string said(length, char('a' + root));
          EXPECT_EQ(broadcast_text(c, c.rank() == root ? said : "what is not asked for", root), said);
        }
    });
}

TEST(Words, TheRootHearsTheTextsOfAll) {
  in_local_world(3, [](Communicator& c) {
    const std::vector<std::string> all = gather_text(c, std::string(size_t(c.rank()), 'x'), 1);
    EXPECT_EQ(all, c.rank() == 1 ? std::vector<std::string>({"", "x", "xx"}) : std::vector<std::string>());
  });
}

TEST(Words, NumbersKeepEveryBitOverANarrowWire) {
  const std::vector<double> odd = {1.0 / 3, -0.0, 1e300, std::nan("7")};
  in_local_world(3,
                 [&](Communicator& c) {
                   std::vector<double> mine = odd;
                   mine.push_back(c.rank() + 1.0 / 7);
                   const auto all = gather_numbers(c, mine);
                   ASSERT_EQ(all.size(), 3u);
                   for (size_t r = 0; r < all.size(); ++r) {
                     ASSERT_EQ(all[r].size(), mine.size());
                     EXPECT_EQ(std::memcmp(all[r].data(), odd.data(), odd.size() * sizeof(double)), 0) << r;
                     EXPECT_EQ(all[r].back(), double(r) + 1.0 / 7);
                   }
                   EXPECT_EQ(gather_numbers(c, {}), std::vector<std::vector<double>>(3)) << "none of each";
                 },
                 {.deadline = 20, .wire = kBF16});
}

TEST(Words, DifferentlyManyNumbersAreADisagreement) {
  in_local_world(2,
                 [](Communicator& c) {
                   if (c.rank() == 0)
                     EXPECT_THROW(gather_numbers(c, {1, 2}), Disagreement);
                   else
                     EXPECT_THROW(gather_numbers(c, {1, 2, 3}), Error);
                 },
                 {.deadline = 0.5});
}

}  // namespace
}  // namespace skein::comm
