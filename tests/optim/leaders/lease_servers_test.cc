// The servers of leases: cycles and rounds, whatever the speeds.
#include "optim/leaders/lease_servers.h"

#include <atomic>

#include "comm/communicator/words.h"
#include "optim/leaders/leaders.h"
#include "optim/snapshot.h"
#include "tests/support/trainee.h"

namespace skein {
namespace {

using namespace trainee;
using optim::lease::Next;

TEST(Leases, ACycleIsExactlyWTauStepsWhateverTheSpeeds) {
  for (const std::vector<std::vector<int>>& groups :
       {std::vector<std::vector<int>>{{0, 1, 2, 3}}, {{0, 1}, {2, 3}}, {{0}, {1, 2, 3}}}) {
    std::atomic<int64_t> all{0};
    std::vector<int64_t> own(4);
    in_local_world(4, [&](comm::Communicator& c) {
      optim::Leases leases({}, c, c, {groups, 4 * 8, 2});
      for (int64_t rounds = 0; rounds < 6;) {
        const Next t = leases.next();
        if (t == Next::kSteps) {
          // Worker 0 is slow: a step of it lasts until the others have taken nearly all of the cycle's.
          const auto began = comm::Clock::now();
          do std::this_thread::sleep_for(std::chrono::microseconds(200));
          while (c.rank() == 0 && all < 32 * (rounds + 1) - 6 && comm::seconds_since(began) < 1);
          ++all, ++own[size_t(c.rank())];
          continue;
        }
        EXPECT_EQ(t, ++rounds % 2 == 0 ? Next::kGlobalRound : Next::kGroupRound);
        c.barrier();
        EXPECT_EQ(all, 32 * rounds);
        c.barrier();
      }
      while (leases.meet() != Next::kMet) {}
    });
    EXPECT_LT(own[0], 6 * 8) << groups.size();  // fewer than the mean of the four
  }
}

TEST(Leases, WhoHasComeWaitsForTheOthersAndTakesPartInTheirRounds) {
  in_local_world(3, [&](comm::Communicator& c) {
    optim::Leases leases({}, c, c, {{{0, 1}, {2}}, 3 * 2, 1});
    for (int64_t meeting = 0; meeting < 3; ++meeting) {
      int64_t rounds = 0;
      const int steps = c.rank() == 2 ? 60 : 3;  // far more than one cycle has
      for (int k = 0; k < steps;) leases.next() == Next::kSteps ? ++k : ++rounds;
      while (leases.meet() != Next::kMet) ++rounds;
      const auto seen = comm::gather_numbers(c, {double(rounds)});
      EXPECT_EQ(rounds, 11);  // 66 steps in cycles of 6
      for (const auto& other : seen) EXPECT_EQ(other[0], double(rounds));
    }
  });
}

// Worker r has taken 3 + r steps of a cycle of 32 when worker 2 is lost.
TEST(Leases, GoOnWithoutAWorkerFromWhatTheOthersHaveTaken) {
  std::vector<optim::Snapshot> states(4);
  in_local_world(4, [&](comm::Communicator& c) {
    optim::Leases leases({}, c, c, {{{0, 1, 2, 3}}, 4 * 8, 1});
    for (int k = 0; k < 3 + c.rank(); ++k) EXPECT_EQ(leases.next(), Next::kSteps);
    c.barrier();
    c.transport().mailbox().end_epoch("the membership is changing");
    states[size_t(c.rank())].take([&](Archive& a) { leases.visit(a); });
  });
  states.erase(states.begin() + 2);
  auto world = comm::local_world(3);
  for (const auto& t : world) t->mailbox().membership().set_epoch(2);
  std::atomic<int64_t> steps{0};
  in_world(world, [&](comm::Communicator& c) {
    optim::Leases leases({}, c, c, {{{0, 1, 2}}, 3 * 8, 1});
    states[size_t(c.rank())].restore([&](Archive& a) { leases.visit(a); });
    while (leases.next() == Next::kSteps) ++steps;
    c.barrier();
    EXPECT_EQ(steps, 3 * 8 - (3 + 4 + 6));
    while (leases.meet() != Next::kMet) {}
  });
}

}  // namespace
}  // namespace skein
