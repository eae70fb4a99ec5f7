// Shares of the global batch that differ: by hand, resumed, with another number of workers.
#include "tests/support/model_files.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using testing_programs::Ended;
using testing_programs::expect_fine;
using testing_programs::expect_has;
using testing_programs::summary_of;

class UnevenCli : public ::testing::Test {
 protected:
  Ended train(const std::string& flags) {
    return place_.run(
        "timeout 100 $TRAIN --data synthetic:8x8x1,classes=3,train=150,test=30 --model mlp --augment none "
        "--threads 1 "
        "--data-threads 1 --lr 0.02 --warmup-epochs 0 --reference-batch 0 --progress none --no-tensorboard "
        "--eval-every 0 " +
        flags);
  }
  Ended resume(const std::string& flags) {
    return place_.run("timeout 100 $TRAIN --progress none --resume " + flags);
  }
  std::string hash(const std::string& run) { return summary_of(place_, run)["hash"]; }
  testing_programs::Workplace place_;
};

TEST_F(UnevenCli, EqualSharesAreTheOneNumber) {
  for (const std::string row : {"allreduce", "local-sgd --tau 3", "sgp", "easgd --tau 2", "d2"}) {
    place_.run("rm -rf list number whole");
    const std::string all = "--workers 4 --steps 14 --algorithm " + row;
    expect_fine(train(all + " --batch-size 8,8,8,8 --output list"));
    expect_fine(train(all + " --batch-size 8 --output number"));
    EXPECT_EQ(hash("list"), hash("number")) << row;
  }
  expect_fine(train("--workers 4 --steps 14 --algorithm d2 --global-batch 32 --output whole"));
  EXPECT_EQ(hash("whole"), hash("number"));
}

// The same images in the same steps: the mean of a step's gradients does not depend on who computed which.
TEST_F(UnevenCli, AveragedGradientsAreThoseOfEvenShares) {
  expect_fine(train("--workers 3 --steps 20 --algorithm allreduce --batch-size 12 --output even"));
  const Ended e = train("--workers 3 --steps 20 --algorithm allreduce --batch-size 3,21,12 --output uneven");
  expect_fine(e);
  expect_has(e.out, "batch 36 over 3 workers: 3, 21, 12");
  EXPECT_LT(testing_programs::models_differ(place_.path() / "even", place_.path() / "uneven"), 1e-5);
}

// A checkpoint has the shares: with them the resumed run repeats the undisturbed one to the bit.
TEST_F(UnevenCli, AResumedRunHasTheSameShares) {
  for (const std::string row : {"allreduce", "slowmo --tau 3", "momentum-tracking"}) {
    place_.run("rm -rf whole part");
    const std::string all = "--workers 3 --batch-size 5,9,4 --algorithm " + row;
    expect_fine(train(all + " --steps 16 --lr-schedule constant --output whole"));
    expect_fine(train(all + " --steps 7 --lr-schedule constant --output part"));
    const Ended e = resume("part --steps 16");
    expect_fine(e);
    expect_has(e.out, "batch 18 over 3 workers: 5, 9, 4");
    EXPECT_EQ(hash("part"), hash("whole")) << row;
  }
  const Ended two = resume("part --steps 20 --workers 2");
  expect_fine(two);
  expect_has(two.out, "batch 2 x 9");
  EXPECT_EQ(summary_of(place_, "part")["global_batch"], 18);
}

// ---- by speed, in a simulated world, where time is exact
// ------------------------------------------------------

const std::string kOneAndTwo = R"(
[compute]
step_ms = 100
[network]
mbit_per_s = 10000
latency_ms = 0.05
[[host]]
name = "slow"
speed = 0.5
[[host]]
name = "fast"
)";

// A step of 64 images takes the fast worker 0.1 s and the slow one 0.2 s: 640 and 320 images/s, which add
// up to 960.
TEST_F(UnevenCli, SharesBySpeedReachTheSumOfTheRates) {
  place_.write("w.toml", kOneAndTwo);
  for (const std::string row : {"allreduce", "sgp", "local-sgd", "downpour"}) {
    place_.run("rm -rf even auto given");
    const std::string all = "--steps 40 --simulate w.toml --global-batch 128 --algorithm " + row;
    expect_fine(train(all + " --output even"));
    const Ended e = train(all + " --batch-size auto --output auto");
    expect_fine(e);
    expect_has(e.out, "batch 128 over 2 workers: 40, 88, by 320 and 640 images/s (measured)");
    EXPECT_NEAR(summary_of(place_, "even")["images_per_second"], 640, 8) << row;
    EXPECT_GT(summary_of(place_, "auto")["images_per_second"], 0.95 * 960) << row;
    EXPECT_EQ(summary_of(place_, "auto")["shares"], apps::Json::array({40, 88}));
    if (row == "downpour") continue;  // the order of commits depends on the time that measuring took
    expect_fine(train(all + " --batch-size 40,88 --output given"));
    EXPECT_EQ(hash("auto"), hash("given")) << row;
  }
}

// Workers that take turns at being slow: each has 100 fast steps, then 100 slow ones, and one begins
// in the middle.
TEST_F(UnevenCli, SharesFollowSpeedsThatChange) {
  std::string steps;
  for (int i = 0; i < 200; ++i) steps += i < 100 ? "100\n" : "200\n";
  place_.write("steps.txt", steps);
  place_.write("w.toml", R"(
[compute]
law = "trace"
trace = "steps.txt"
[network]
mbit_per_s = 10000
[[host]]
name = "h"
count = 2
)");
  for (const std::string row : {"allreduce", "d-psgd", "dynsgd"}) {
    place_.run("rm -rf run");
    const Ended e = train("--steps 250 --simulate w.toml --batch-size auto --global-batch 15 --algorithm " +
                          row + " --output run");
    expect_fine(e);
    expect_has(e.out, "batch 15 over 2 workers: 10, 5, by 80 and 40 images/s (measured)");
    expect_has(e.out, "batch 15 over 2 workers: 5, 10, by 40 and 80 images/s (speeds have changed)");
    const std::string events = place_.read("run/metrics.jsonl");
    expect_has(events, "\"shares\":[5,10]");
    expect_has(place_.read("run/report.html"), "worker_1");
  }
}

// What a checkpoint says goes on as it is; with other workers all are measured again.
TEST_F(UnevenCli, AResumedRunKeepsItsSharesBySpeed) {
  place_.write("w.toml", kOneAndTwo);
  const std::string all =
      "--simulate w.toml --batch-size auto --global-batch 30 --lr-schedule constant --algorithm allreduce";
  expect_fine(train(all + " --steps 20 --output whole"));
  expect_fine(train(all + " --steps 9 --output part"));
  const Ended e = resume("part --steps 20");
  expect_fine(e);
  expect_has(e.out, "batch 30 over 2 workers: 10, 20 (as before)");
  EXPECT_EQ(hash("part"), hash("whole"));
  place_.write("w.toml", kOneAndTwo + "[[host]]\nname = \"third\"\n");
  const Ended three = resume("part --steps 25");
  expect_fine(three);
  expect_has(three.out, "batch 30 over 3 workers: 6, 12, 12, by 50, 100 and 100 images/s (measured)");
}

TEST_F(UnevenCli, RefusesSharesForOtherWorkers) {
  const Ended e = train("--batch-size 8,8 --output none");
  EXPECT_EQ(e.status, 2);
  expect_has(e.err, "--batch-size: 8,8 is for 2 workers, and there is 1");
  const Ended few = train("--global-batch 2 --workers 3 --algorithm allreduce --output none");
  EXPECT_EQ(few.status, 2);
  expect_has(few.err, "--global-batch 2 is less than an image for each of 3 workers");
  EXPECT_FALSE(place_.has("none"));
}

}  // namespace
}  // namespace skein
