// Workers that continue without lost ones: one is killed at every point of what they do together.
#include "apps/survival/survivors.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/world.h"

namespace skein::apps {
namespace {

using comm::Communicator;
using comm::Rank;
using World = std::vector<std::unique_ptr<comm::Transport>>;

struct Killed {};

// Looks to the others like a kill -9: they miss it wherever they are.
void die(World& world, Rank me) {
  for (auto& t : world)
    if (t->rank() != me) t->mailbox().lose(me, "its process has ended", true);
  throw Killed();
}

// For each action that a worker completed: how many workers took part, as summed by all of them.
using Story = std::vector<float>;

// Three actions of three collectives each on n workers; `victim` dies at one of its twelve points: before
// each collective and after the last.
std::vector<Story> live_through(int n, int victim, int point) {
  World world = comm::local_world(n);
  std::vector<Story> stories(static_cast<size_t>(n));
  comm::on_threads(n, [&](Rank me) {
    Communicator all(*world[size_t(me)], {.deadline = 20});
    Survivors survivors(all, true);
    int at = 0;
    const auto here = [&] {
      if (me == victim && at++ == point) die(world, me);
    };
    try {
      for (int action = 0; action < 3; ++action) {
        float sum = 0;
        survivors.wholly([&] {
          here();
          survivors.comm().barrier();
          here();
          const Tensor ones = Tensor::of<float>({1}, {1.f});
          survivors.comm().all_reduce(ones).wait();
          here();
          survivors.comm().broadcast(ones, survivors.comm().size() - 1);
          here();
          sum = ones.item();
        });
        stories[size_t(me)].push_back(sum);
      }
      for (Rank r : survivors.lost()) EXPECT_EQ(r, victim);
    } catch (const Killed&) { stories[size_t(me)].clear(); }
  });
  return stories;
}

TEST(Survivors, ALossAnywhereInAnActionIsSurvivedByAllOrLeavesItWhole) {
  for (int n : {2, 3, 4, 5})
    for (int victim = 1; victim < n; ++victim)
      for (int point = 0; point < 12; ++point) {
        const std::vector<Story> stories = live_through(n, victim, point);
        for (int r = 0; r < n; ++r)
          if (r != victim) {
            EXPECT_EQ(stories[size_t(r)], stories[0])
                << "worker " << r << " of " << n << ", " << victim << " dies at " << point;
          }
        ASSERT_EQ(stories[0].size(), 3u);
        for (int action = 0; action < 3; ++action)
          EXPECT_EQ(stories[0][size_t(action)], float(4 * action + 3 < point ? n : n - 1))
              << n << " workers, " << victim << " dies at " << point << ", action " << action;
      }
}

TEST(Survivors, NobodyContinuesWithoutWorkerZero) {
  World world = comm::local_world(3);
  comm::on_threads(3, [&](Rank me) {
    Communicator all(*world[size_t(me)], {.deadline = 20});
    Survivors survivors(all, true);
    if (me == 0) {
      EXPECT_THROW(die(world, me), Killed);
      return;
    }
    EXPECT_THROW(survivors.wholly([&] { survivors.comm().barrier(); }), comm::PeerLost);
  });
}

TEST(Survivors, WhoeverDoesNotSurviveALossThrowsIt) {
  World world = comm::local_world(3);
  comm::on_threads(3, [&](Rank me) {
    Communicator all(*world[size_t(me)], {.deadline = 20});
    Survivors survivors(all, false);
    if (me == 2) {
      EXPECT_THROW(die(world, me), Killed);
      return;
    }
    EXPECT_THROW(survivors.wholly([&] { survivors.comm().barrier(); }), comm::PeerLost);
    EXPECT_TRUE(survivors.lost().empty());
  });
}

TEST(Survivors, AreToldThatTheyAreFewerBeforeTheyTryAgain) {
  World world = comm::local_world(3);
  comm::on_threads(3, [&](Rank me) {
    Communicator all(*world[size_t(me)], {.deadline = 20});
    Survivors survivors(all, true);
    std::vector<int> sizes;
    survivors.when_fewer([&] { sizes.push_back(survivors.comm().size()); });
    survivors.wholly([&] { survivors.comm().barrier(); });
    EXPECT_TRUE(sizes.empty());
    if (me == 2) {
      EXPECT_THROW(die(world, me), Killed);
      return;
    }
    survivors.wholly([&] {
      EXPECT_EQ(sizes.empty(), survivors.comm().size() == 3);
      survivors.comm().barrier();
    });
    survivors.wholly([&] { survivors.comm().barrier(); });
    EXPECT_EQ(sizes, std::vector<int>{2});
  });
}

// Only `witness` misses worker 2, which is alive and waits for something else.
void expect_given_up(int witness) {
  World world = comm::local_world(4);
  comm::on_threads(4, [&](Rank me) {
    Communicator all(*world[size_t(me)], {.deadline = 20});
    Survivors survivors(all, true);
    if (me == witness) world[size_t(me)]->mailbox().lose(2, "not heard of", false);
    if (me == 2) {
      EXPECT_THROW(all.take(0, 1, 0), comm::GivenUp) << "missed by " << witness;
      return;
    }
    survivors.wholly([&] { survivors.comm().barrier(); });
    EXPECT_EQ(survivors.lost(), std::vector<int>{2}) << "missed by " << witness;
  });
}

TEST(Survivors, AWorkerThatOneMissesIsGivenUpByAllAndToldSo) {
  expect_given_up(0);
  expect_given_up(1);
  expect_given_up(3);
}

TEST(Survivors, OfSidesThatMissEachOtherOneMayWrite) {
  for (unsigned n = 1; n <= 6; ++n)
    for (unsigned ended = 0; ended + 1 < (1u << n); ++ended)
      for (unsigned side = 0; side < (1u << n); ++side) {
        int writers = 0;
        for (const unsigned mine : {side & ~ended, ~side & ~ended & ((1u << n) - 1)}) {
          std::vector<int> members;
          std::vector<bool> gone;
          for (unsigned w = 0; w < n; ++w) {
            gone.push_back(ended >> w & 1);
            if (mine >> w & 1) members.push_back(int(w));
          }
          if (!members.empty()) writers += may_write(members, gone);
        }
        EXPECT_EQ(writers, 1) << n << " workers, ended " << ended << ", side " << side;
      }
}

}  // namespace
}  // namespace skein::apps
