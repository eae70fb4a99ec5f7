// Resuming at any step equals no interruption, bit for bit; a damaged checkpoint is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "apps/train/trainer.h"
#include "tests/support/program.h"
#include "tests/support/world.h"

namespace skein::apps {
namespace {

using testing_programs::Workplace;

// Uses everything that could depend on where the run was interrupted: momentum, dropout or batch norm,
// augmentation, a smaller last batch, a rate that changes every step.
Config config_of(const std::string& model, const std::string& precision) {
  Config c;
  c.data = "synthetic:16x16x1,classes=4,train=52,test=20";
  c.model = model;
  c.precision = precision;
  c.augment = "shift";
  c.batch_size = 8;
  c.epochs = 2;
  c.lr = 1;
  c.label_smoothing = 0.1;
  c.threads = model == "gem-cnn" ? 2 : 1;
  c.data_threads = 2;
  c.eval_every = 0;
  c.log_every = 3;
  c.checkpoint_every = "0";
  return c;
}

struct Trained {
  Outcome outcome;
  int64_t steps_per_epoch;
};

// Trains in `directory` until `steps` are taken or to the end; continues the run that is there.
Trained train(const Config& c, const std::string& directory, int64_t steps, bool resume) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), std::fclose);
  Progress progress(nowhere.get());
  Setup setup = open_setup(c);
  const int64_t per_epoch = setup.steps_per_epoch;
  comm::WorldOfOne one;
  Survivors alone(one, false);
  Trainer trainer(c, std::move(setup), directory, progress, alone);
  int64_t taken = 0;
  if (resume) {
    const std::string checkpoint = find_checkpoint(directory);
    taken = read_manifest(checkpoint).step;
    trainer.resume(checkpoint);
  }
  // Called once before each step, and within the evaluation at the end, which must not stop.
  return {trainer.run([&] { return taken++ == steps; }), per_epoch};
}

class Resume : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Resume, AtAnyStepEqualsNoInterruption) {
  const auto [model, precision] = GetParam();
  const Config c = config_of(model, precision);
  const Workplace w;
  const std::string straight = w.path() / "straight";
  const Trained whole = train(c, straight, -1, false);
  ASSERT_EQ(whole.steps_per_epoch, 7);
  ASSERT_EQ(whole.outcome.step, 14);
  ASSERT_TRUE(whole.outcome.score);
  for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{1}, {5, 6}, {7}, {3, 10, 13}}) {
    const std::string dir = w.path() / text("cut", cuts.front());
    bool resume = false;
    for (const int64_t at : cuts) {
      const Trained part = train(c, dir, at, resume);
      EXPECT_TRUE(part.outcome.interrupted);
      EXPECT_EQ(part.outcome.step, at);
      EXPECT_NE(part.outcome.hash, whole.outcome.hash);
      resume = true;
    }
    const Trained rest = train(c, dir, -1, true);
    EXPECT_EQ(rest.outcome.hash, whole.outcome.hash)
        << model << ' ' << precision << " cut first at " << cuts.front();
    EXPECT_EQ(rest.outcome.score->loss, whole.outcome.score->loss);
    EXPECT_EQ(rest.outcome.score->top1, whole.outcome.score->top1);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Resume,
                         ::testing::Values(std::pair{"gem-cnn", "fp32"}, std::pair{"small-cnn", "fp32"},
                                           std::pair{"small-cnn", "bf16"}, std::pair{"gem-cnn", "bf16"},
                                           std::pair{"small-cnn", "fp16"}, std::pair{"gem-cnn", "fp16"}),
                         [](const auto& info) {
                           std::string name = text(info.param.first, "_", info.param.second);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Resume, TheSeedDecidesEverything) {
  const Workplace w;
  Config c = config_of("gem-cnn", "fp32");
  const std::string one = train(c, w.path() / "a", -1, false).outcome.hash;
  EXPECT_EQ(train(c, w.path() / "b", -1, false).outcome.hash, one);
  c.seed = 2;
  EXPECT_NE(train(c, w.path() / "c", -1, false).outcome.hash, one);
}

// All meet for the checkpoint of step 4. Worker 0 has continued when worker 1 is told to stop there.
TEST(Stopping, RightAfterAMeetingIsAgreedOnAnew) {
  const Workplace w;
  Config c = config_of("mlp", "fp32");
  c.algorithm = "ad-psgd";
  c.batch_size = 4, c.epochs = 100, c.lr = 0.01, c.checkpoint_every = "4steps";
  std::atomic<bool> ahead{false};
  std::vector<int64_t> ended(2);
  comm::in_local_world(2, [&](comm::Communicator& comm) {
    const int rank = comm.rank();
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), std::fclose);
    Progress progress(nowhere.get());
    Survivors survivors(comm, false);
    Place place;
    place.rank = rank, place.world = 2;
    Trainer trainer(c, open_setup(c, place), w.path() / "run", progress, survivors);
    const Outcome out = trainer.run([&] {
      if (rank == 0 && trainer.step_number() == 5) ahead = true;
      if (rank == 1 && trainer.step_number() == 4) ahead.wait(false);
      if (rank == 0 && ahead) ahead.notify_all();
      return trainer.step_number() >= 4 + (rank == 0 ? 1 : 0);
    });
    EXPECT_TRUE(out.interrupted);
    ended[size_t(rank)] = out.step;
  });
  EXPECT_EQ(ended, (std::vector<int64_t>{5, 5}));
}

TEST(Resume, EpochsCloseOnceHoweverOftenTheRunIsCut) {
  const Workplace w;
  Config c = config_of("mlp", "fp32");
  c.eval_every = 1;
  const std::string dir = w.path() / "run";
  const auto stop_in_evaluation = [&](bool resume) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), std::fclose);
    Progress progress(nowhere.get());
    comm::WorldOfOne one;
    Survivors alone(one, false);
    Trainer trainer(c, open_setup(c), dir, progress, alone);
    if (resume) trainer.resume(find_checkpoint(dir));
    int calls = 0;
    return trainer.run([&] { return ++calls == 8; });  // seven steps, then the first batch of the evaluation
  };
  const Outcome cut = stop_in_evaluation(false);
  EXPECT_TRUE(cut.interrupted);
  EXPECT_EQ(cut.step, 7);
  EXPECT_FALSE(cut.score);
  train(c, dir, -1, true);
  const std::string metrics = w.read("run/metrics.jsonl");
  size_t evaluations = 0;
  for (size_t at = 0; (at = metrics.find("\"eval\"", at)) != std::string::npos; ++at) ++evaluations;
  EXPECT_EQ(evaluations, 2u) << metrics;
}

TEST(Resume, RefusesACheckpointThatWasDamaged) {
  const Workplace w;
  const Config c = config_of("mlp", "fp32");
  const std::string dir = w.path() / "run";
  train(c, dir, 3, false);
  train(c, dir, 5, true);
  const std::string newest = find_checkpoint(dir);
  for (const auto& entry : std::filesystem::directory_iterator(newest))
    if (entry.path().extension() == ".safetensors") {
      std::fstream f(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      f.seekp(-9, std::ios::end);
      f.put('~');
    }
  try {
    train(c, dir, -1, true);
    FAIL() << "a damaged checkpoint was loaded";
  } catch (const BadFile& e) {
    EXPECT_NE(std::string(e.what()).find(list_checkpoints(dir).front()), std::string::npos) << e.what();
  }
}

TEST(Resume, RefusesToEndBeforeItBegins) {
  const Workplace w;
  Config c = config_of("mlp", "fp32");
  train(c, w.path() / "run", 9, false);
  c.epochs = 1;
  EXPECT_THROW(train(c, w.path() / "run", -1, true), BadOption);
}

}  // namespace
}  // namespace skein::apps
