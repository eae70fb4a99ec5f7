// The trainer in a simulated world: the same bits as on threads, the same files twice, and an end
// as between processes.
#include <gtest/gtest.h>

#include "apps/train/trainer.h"
#include "tests/support/parts.h"
#include "tests/support/sim.h"

namespace skein::apps {
namespace {

using comm::sim::Id;
using comm::sim::World;

Config config_of(const std::string& row) {
  Config c = small_config();
  c.batch_size = 4;
  c.epochs = 3;
  c.algorithm = row;
  c.workers = 4;
  return c;
}

Outcome train(comm::Communicator& all, const Config& c, const std::string& directory) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), std::fclose);
  Progress progress(nowhere.get());
  Survivors survivors(all, optim::strategy_row(c.algorithm).center());
  Trainer trainer(c, open_setup(c, place_of(all)), directory, progress, survivors);
  return trainer.run();
}

struct Simulated {
  std::vector<Outcome> ends{4};
  double seconds = 0;
  std::string log;
};

// Four workers; one of them is killed at that second.
Simulated simulate(const Config& c, const std::string& directory, double kill_at = -1, Id victim = 2) {
  World world({.weather = {.seed = 1, .latency = 0.01, .jitter = 0.01, .bandwidth = 1e8}});
  Simulated s;
  populate(world, 4, [&](comm::Communicator& all) { s.ends[size_t(all.rank())] = train(all, c, directory); });
  if (kill_at >= 0) world.at(kill_at, [&] { world.kill(victim); });
  world.run();
  s.seconds = world.now();
  s.log = world.log();
  return s;
}

TEST(TrainerInAWorld, GivesTheBitsOfARunOnThreads) {
  for (const char* row : {"allreduce", "sgp", "local-sgd", "slowmo"}) {
    const Workplace w;
    const Config c = config_of(row);
    std::vector<std::string> hashes(4);
    comm::run_workers(4, [&](comm::Communicator& all) {
      hashes[size_t(all.rank())] = train(all, c, w.path() / "threads").hash;
    });
    const Simulated s = simulate(c, w.path() / "world");
    EXPECT_GT(s.seconds, 0.1) << row;
    for (size_t r = 0; r < 4; ++r) {
      EXPECT_FALSE(s.ends[r].interrupted) << row;
      EXPECT_EQ(s.ends[r].hash, hashes[r]) << row;
    }
    EXPECT_FALSE(hashes[0].empty());
  }
}

TEST(TrainerInAWorld, OfTheSameSeedHasTheSameLog) {
  for (const char* row : {"osgp", "ad-psgd", "gem", "lsgd"}) {
    const Workplace w;
    const Config c = config_of(row);
    const Simulated one = simulate(c, w.path() / "one"), two = simulate(c, w.path() / "two");
    EXPECT_GT(one.log.size(), 1000u);
    EXPECT_EQ(one.log, two.log) << row;
    EXPECT_EQ(one.ends[0].hash, two.ends[0].hash) << row;
  }
}

TEST(TrainerInAWorld, EndsWithACheckpointWhereAWorkerIsKilled) {
  for (const char* row : {"allreduce", "sgp"}) {
    const Workplace w;
    const Config c = config_of(row);
    const double whole = simulate(c, w.path() / "whole").seconds;
    const std::string directory = w.path() / "run";
    const Simulated s = simulate(c, directory, whole / 2);
    for (size_t r : {0, 1, 3}) {
      EXPECT_TRUE(s.ends[r].bereaved) << row;
      EXPECT_TRUE(s.ends[r].interrupted) << row;
    }
    testing_programs::expect_has(s.ends[0].why,
                                 "worker 2 is lost: its process has ended; the others wrote a checkpoint");
    const std::string checkpoint = find_checkpoint(directory);
    verify_checkpoint(checkpoint);
    EXPECT_GT(read_manifest(checkpoint).step, 0) << row;
    EXPECT_EQ(read_manifest(checkpoint).step, s.ends[0].step) << row;
  }
}

TEST(TrainerInAWorld, GoesOnWithoutAKilledWorkerWhereThereIsACenter) {
  const Workplace w;
  const Config c = config_of("gem");
  const double whole = simulate(c, w.path() / "whole").seconds;
  const Simulated s = simulate(c, w.path() / "run", whole / 2);
  for (size_t r : {0, 1, 3}) EXPECT_FALSE(s.ends[r].interrupted);
  EXPECT_EQ(s.ends[1].hash, s.ends[0].hash);
  EXPECT_EQ(s.ends[2].step, 0) << "a killed worker goes on";
}

}  // namespace
}  // namespace skein::apps
