// Groups and twins of a communicator.
#include "comm/communicator/group.h"

#include "tests/support/world.h"

namespace skein::comm {
namespace {

TEST(Group, SharesNoTagsWithItsParentOrATwin) {
  in_local_world(4, [](Communicator& c) {
    const auto all = c.group({3, 2, 1, 0}), twin = c.group({3, 2, 1, 0});
    EXPECT_EQ(all->rank(), 3 - c.rank());
    const Rank next = (c.rank() + 1) % 4, last = (c.rank() + 3) % 4;
    c.push(next, 1, 0, 1, ones(1, 1));
    twin->push(3 - next, 1, 0, 1, ones(1, 2));
    all->push(3 - next, 1, 0, 1, ones(1, 3));
    const Message m = all->take(3 - last, 1, 0);
    EXPECT_EQ(m.from, 3 - last);
    EXPECT_EQ(*m.payload.data<float>(), 3);
    EXPECT_EQ(*c.take(last, 1, 0).payload.data<float>(), 1);
    EXPECT_EQ(*twin->take(3 - last, 1, 0).payload.data<float>(), 2);
    if (c.rank() % 2 == 0) {  // the others need not know
      const auto even = c.group({0, 2});
      const Tensor x = ones(5);
      even->all_reduce(x).wait();
      EXPECT_EQ(x.data<float>()[4], 2);
    }
    c.barrier();
  });
}

}  // namespace
}  // namespace skein::comm
