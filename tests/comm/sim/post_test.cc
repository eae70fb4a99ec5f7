// Datagrams of the simulated world: an inbox and its clients work in any weather.
#include "comm/sim/post.h"

#include <map>

#include "comm/communicator/words.h"
#include "comm/inbox/inbox.h"
#include "comm/inbox/inbox_client.h"
#include "comm/seal/greeting.h"
#include "tests/support/sim.h"
#include "tests/support/world.h"

namespace skein::comm::sim {
namespace {

constexpr int kEach = 20;

// Worker 0 serves the three others; the requests it took, by worker.
std::map<int, std::vector<int32_t>> serve(const Weather& weather, double* seconds = nullptr) {
  std::map<int, std::vector<int32_t>> taken;
  World world({.weather = weather});
  populate(world, 4,
           [&](Communicator& c) {
             if (c.rank() == 0) {
               Inbox inbox(inbox_beside(c, 3));
               broadcast_text(c, inbox.invitation().words(), 0);
               for (int k = 0; k < 3 * kEach;) {
                 const auto r = inbox.next(after(5));
                 if (!r) continue;
                 taken[r->worker].push_back(r->argument), ++k;
                 c.push(r->worker + 1, 1, r->sequence, 1, Tensor::zeros({1}));
               }
               c.barrier();
               EXPECT_EQ(inbox.counts().accepted, 3 * kEach);
             } else {
               const std::string words = broadcast_text(c, "", 0);
               InboxClient client(Invitation::read(words), c.options().key, c.rank() - 1);
               for (int32_t k = 0; k < kEach; ++k) c.take(0, 1, client.ask(1, k));
               c.barrier();
             }
           },
           {.deadline = 20, .key = Secret(std::string(kJobKeyBytes, 'k'))});
  world.run();
  if (seconds) *seconds = world.now();
  return taken;
}

TEST(Post, ServesEveryRequestOnceInAnyWeather) {
  double calm = 0, stormy = 0;
  const auto in_calm = serve({.latency = 1e-3}, &calm);
  const auto in_storm =
      serve({.seed = 3, .latency = 1e-3, .jitter = 0.02, .loss = 0.3, .duplication = 0.3, .overtaking = true},
            &stormy);
  for (int w = 0; w < 3; ++w) {
    std::vector<int32_t> all(kEach);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(in_calm.at(w), all) << w;
    EXPECT_EQ(in_storm.at(w), all) << w;
  }
  EXPECT_LT(calm, 0.1);
  EXPECT_GT(stormy, 2 * calm);
}

}  // namespace
}  // namespace skein::comm::sim
