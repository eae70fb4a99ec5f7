// What is under way by TCP arrives without help of the ranks.
#include <gtest/gtest.h>

#include <thread>

#include "comm/communicator/communicator.h"
#include "comm/mailbox.h"
#include "tests/support/keys.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

// More than what kernels keep of a connection, both ways at once, while no rank calls anything.
TEST(TcpTransport, MovesMessagesWhileTheRanksCompute) {
  const auto table = std::make_shared<ThreadExchange::Table>(2);
  on_threads(2, [&](Rank r) {
    ThreadExchange exchange(table, r);
    const auto transport = connect(exchange, {.way = Way::kTcp, .key = kKey, .deadline = 20});
    Communicator c(*transport, {.deadline = 20});
    c.barrier();
    const int64_t before = transport->mailbox().arrivals();
    c.push(1 - r, 1, 0, 1, ones(8 << 20));
    const auto until = after(20);
    while (transport->mailbox().arrivals() == before && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(c.poll(1 - r, 1, 0));
    c.barrier();
  });
}

}  // namespace
}  // namespace skein::comm
