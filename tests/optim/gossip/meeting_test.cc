// Meeting: no worker leaves before all have come, and how many messages that takes.
#include "optim/gossip/meeting.h"

#include "comm/clock.h"
#include "tests/support/sim.h"
#include "tests/support/testing.h"

namespace skein::optim {
namespace {

using comm::Clock;

// Workers come in another order each time, up to 70 ms apart.
TEST(Meeting, EndsWhenTheLastHasCome) {
  for (const int n : {1, 2, 3, 9, 10, 30, 80}) {
    int64_t messages = 0;
    int waiting = 0;  // workers that were asked to serve others, summed over the rounds
    std::vector<std::vector<Clock::time_point>> came(3), left(3);
    comm::sim::in_sim_world(n, {.latency = 1e-3}, [&](comm::Communicator& c) {
      Meeting meeting(1);
      for (size_t round = 0; round < 3; ++round) {
        comm::nap(std::chrono::milliseconds((c.rank() * 37 + int(round) * 23) % 71));
        int served = 0;
        came[round].push_back(Clock::now());
        meeting.meet(c, [&] { ++served; });
        left[round].push_back(Clock::now());
        waiting += served > 0;
      }
      messages += c.meter().traffic().messages;
    });
    EXPECT_EQ(messages, 3 * 2 * (n - 1)) << n;
    EXPECT_GE(waiting, 3 * (n - 1)) << n;
    for (size_t round = 0; round < 3; ++round) {
      const auto last = *std::max_element(came[round].begin(), came[round].end());
      EXPECT_GE(*std::min_element(left[round].begin(), left[round].end()), last) << n;
      // At most three levels up and as many down, with a millisecond and some sleep each.
      const auto bound = last + std::chrono::milliseconds(60);
      EXPECT_LE(*std::max_element(left[round].begin(), left[round].end()), bound) << n;
    }
  }
}

}  // namespace
}  // namespace skein::optim
