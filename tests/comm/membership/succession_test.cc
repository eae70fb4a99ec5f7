// Succession in many worlds: an epoch has one successor, and where a quorum is left it goes on
// without the dead.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "tests/comm/membership/succession_world.h"

namespace skein::comm {
namespace {

using testing::World;

struct Outcome {
  int64_t worlds = 0, changes = 0, lost = 0;  // lost: no quorum was left
  uint64_t seed = 0;                          // of the first that broke
  std::string why;                            // empty: none did
};

// Worlds of all seeds from `first` on, by two threads, until one breaks.
Outcome run_worlds(uint64_t first, uint64_t count, Rules rules) {
  Outcome all;
  std::mutex mutex;
  std::atomic<uint64_t> next{first};
  std::atomic<bool> over{false};
  const auto work = [&] {
    for (uint64_t seed; !over && (seed = next++) < first + count;) {
      World::End end;
      std::string why;
      try {
        end = World(seed, rules).run();
      } catch (const Error& e) { why = e.what(); }
      std::lock_guard lock(mutex);
      ++all.worlds, all.changes += end.epoch - 1, all.lost += !end.settled && why.empty();
      if (why.empty() || (!all.why.empty() && all.seed < seed)) continue;
      all.seed = seed, all.why = why, over = true;
    }
  };
  std::thread other(work);
  work();
  other.join();
  return all;
}

std::string program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* const words = std::getenv(variable);
  return words ? std::strtoull(words, nullptr, 10) : otherwise;
}

// SKEIN_WORLDS=N: so many worlds, from SKEIN_WORLD on. SKEIN_WORLD=SEED alone: this one, told as it happens.
TEST(SuccessionWorlds, HaveOneSuccessorOfEachEpochAndGoOnWithoutTheDead) {
  const uint64_t first = number_from("SKEIN_WORLD", 0);
  if (std::getenv("SKEIN_WORLD") && !std::getenv("SKEIN_WORLDS")) {
    EXPECT_NO_THROW(World(first, {}, true).run());
    return;
  }
  const Outcome o = run_worlds(first, number_from("SKEIN_WORLDS", 100000), {});
  EXPECT_EQ(o.why, "") << "replay: SKEIN_WORLD=" << o.seed << ' ' << program() << " --file=succession_test";
  std::cout << o.worlds << " worlds, " << o.changes << " changes of epoch; " << o.lost
            << " ended without a quorum\n";
}

// Each of these rules sounds right, and gives some epoch two successors.
struct Mutant {
  const char* name;
  Rules rules;
};
const Mutant kMutants[] = {
    {"MajorityOfThoseNotProvenDead",
     {.quorum = [](const Census& c) { return 2 * c.said > c.members - c.dead || is_quorum(c); }}},
    {"MoreThanHalfMayBeProvenDead", {.quorum = [](const Census& c) { return c.all_others || is_quorum(c); }}},
    {"VotesOfEarlierBallotsIgnored", {.heeds_votes = false}},
};

class WrongRule : public ::testing::TestWithParam<Mutant> {};

TEST_P(WrongRule, IsFoundToGiveAnEpochTwoSuccessors) {
  const Outcome o = run_worlds(0, 100000, GetParam().rules);
  EXPECT_NE(o.why.find("two successors"), std::string::npos) << o.worlds << " worlds: '" << o.why << "'";
  std::cout << "world " << o.seed << ": " << o.why << "\n";
}
INSTANTIATE_TEST_SUITE_P(SuccessionWorlds, WrongRule, ::testing::ValuesIn(kMutants),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace skein::comm
