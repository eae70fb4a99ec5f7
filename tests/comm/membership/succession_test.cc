// Succession in many worlds: an epoch has one successor, and where a quorum is left it goes on without the dead.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tests/comm/membership/succession_world.h"

namespace skein::comm {
namespace {

using testing::Broken;
using testing::World;

struct Outcome {
  int64_t worlds = 0, changes = 0;
  uint64_t seed = 0;  // of the first that broke
  std::string why;    // empty: none did
};

// Worlds of all seeds from `first` on, by two threads, until one breaks.
Outcome run_worlds(uint64_t first, uint64_t count, Rules rules) {
  Outcome all;
  std::mutex mutex;
  std::atomic<uint64_t> next{first};
  std::atomic<bool> over{false};
  const auto work = [&] {
    for (uint64_t seed; !over && (seed = next++) < first + count;) {
      uint32_t epochs = 1;
      std::string why;
      try {
        epochs = World(seed, rules).run();
      } catch (const Error& e) {
        why = e.what();
      }
      std::lock_guard lock(mutex);
      ++all.worlds, all.changes += epochs - 1;
      if (why.empty() || (!all.why.empty() && all.seed < seed)) continue;
      all.seed = seed, all.why = why, over = true;
    }
  };
  std::thread other(work);
  work();
  other.join();
  return all;
}

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* const words = std::getenv(variable);
  return words ? std::strtoull(words, nullptr, 10) : otherwise;
}

TEST(SuccessionWorlds, HaveOneSuccessorOfEachEpochAndGoOnWithoutTheDead) {
  if (std::getenv("SKEIN_WORLD")) {
    World(number_from("SKEIN_WORLD", 0), {}, true).run();
    return;
  }
  const Outcome o = run_worlds(0, number_from("SKEIN_WORLDS", 100000), {});
  EXPECT_EQ(o.why, "") << "SKEIN_WORLD=" << o.seed << " build/cpu/comm_tests --gtest_filter='SuccessionWorlds.Have*'";
  std::cout << o.worlds << " worlds, " << o.changes << " changes of epoch\n";
}

}  // namespace
}  // namespace skein::comm
