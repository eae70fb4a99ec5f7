// train_imagenet is stopped and resumed, and a run's directory belongs to it alone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/base.h"
#include "tests/programs/tiny_training.h"

namespace skein {
namespace {

using testing_programs::Ended;
using testing_programs::expect_has;
using testing_programs::Workplace;
using Json = nlohmann::json;

// An endless run in the background; $P is its process, once it has trained.
const std::string kLong =
    std::string(kTiny) +
    "--epochs 100000 --eval-every 0 --checkpoint-every 0 --log-every 1 --threads 1 --output out ";
constexpr const char* kInBackground =
    " & P=$!; until grep -qs loss out/metrics.jsonl || ! kill -0 $P; do sleep 0.05; done; ";

TEST(Stopping, CtrlCWritesACheckpointAndSaysHowToGoOn) {
  const Workplace w;
  const std::string start =
      std::string(kTiny) + "--epochs 100000 --checkpoint-every 0 --eval-every 0 --output out";
  const Ended e = w.run(start +
                        " & P=$!; for i in $(seq 600); do grep -qs loss out/metrics.jsonl && break; "
                        "sleep 0.05; done; kill -INT $P; wait $P");
  EXPECT_EQ(e.status, 130) << e.out << e.err;
  expect_has(e.out, "train_imagenet --resume out");
  EXPECT_FALSE(w.has("out/model.safetensors"));
  const Json summary = Json::parse(w.read("out/summary.json"));
  EXPECT_TRUE(summary["interrupted"].get<bool>());
  const int64_t steps = summary["steps"];
  const Ended again = w.run("$TRAIN --resume out --epochs 0 --steps " + std::to_string(steps + 3));
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(Json::parse(w.read("out/summary.json"))["steps"], steps + 3);
}

// A lost ssh connection or a closed terminal hangs up any number of times, from the kernel
// and from the shell.
TEST(Stopping, AHangUpWritesACheckpointToo) {
  const Workplace w;
  for (const char* workers : {"1", "2 --algorithm sgp"}) {
    const Ended e = w.run("rm -rf out; " + kLong + "--workers " + workers + kInBackground +
                          "kill -HUP $P; until [ -d out/checkpoints ] || ! kill -0 $P; do "
                          "kill -HUP $P; sleep 0.05; done; wait $P");
    EXPECT_EQ(e.status, 130) << e.out << e.err;
    expect_has(e.out, "--resume out");
    EXPECT_TRUE(Json::parse(w.read("out/summary.json"))["interrupted"].get<bool>());
  }
}

TEST(Stopping, BelowNohupAHangUpIsNothing) {
  const Workplace w;
  const Ended e =
      w.run("trap '' HUP; " + kLong + kInBackground +
            "kill -HUP $P; wc -l < out/metrics.jsonl > lines; until [ $(wc -l < out/metrics.jsonl) "
            "-gt $(($(cat lines) + 5)) ] || ! kill -0 $P; do sleep 0.05; done; kill -INT $P; wait $P");
  EXPECT_EQ(e.status, 130) << e.out << e.err;
}

// With `| head` the reader ends early; with `2>&1 | tee log` and Ctrl-C the reader dies first.
TEST(Stopping, GoesOnWhenNobodyReadsWhatItSays) {
  const Workplace w;
  const Ended e = w.run(std::string(kTiny) + "--epochs 3 --output out 2>&1 | true; echo ${PIPESTATUS[0]}");
  EXPECT_EQ(e.out, "0\n") << e.err;
  EXPECT_TRUE(w.has("out/model.safetensors"));
}

TEST(Stopping, FinishesItsFilesWhenCtrlCEndsTheReaderFirst) {
  const Workplace w;
  for (const char* workers : {"1", "2 --algorithm sgp"}) {
    w.run("rm -rf out pipe; mkfifo pipe; cat pipe > log & R=$!; " + kLong + "--workers " + workers +
          " > pipe 2>&1 & P=$!; until grep -qs loss out/metrics.jsonl || ! kill -0 $P; do sleep 0.05; done; "
          "kill $R; wait $R; kill -INT $P; wait $P; echo $? > status");
    EXPECT_EQ(w.read("status"), "130\n") << w.read("log");
    EXPECT_TRUE(w.has("out/report.html"));
    EXPECT_TRUE(Json::parse(w.read("out/summary.json"))["interrupted"].get<bool>());
  }
}

TEST(Stopping, RunsBegunAtOnceGetDirectoriesOfTheirOwn) {
  const Workplace w;
  const Ended e =
      w.run("for i in 1 2 3; do " + std::string(kTiny) +
            "--steps 3 --seed $i > /dev/null || echo failed & done; wait; ls -d runs/*/ | wc -l; "
            "ls runs/*/model.safetensors | wc -l; grep -oh '^seed = [0-9]*' runs/*/config.toml | sort");
  EXPECT_EQ(e.out, "3\n3\nseed = 1\nseed = 2\nseed = 3\n") << e.err;
}

TEST(Stopping, OneOfTwoRunsBegunAtOnceInOneDirectoryHasIt) {
  const Workplace w;
  const Ended e = w.run("for i in 1 2; do " + std::string(kTiny) +
                        "--steps 3 --seed $i --output out > /dev/null && echo done & done; wait");
  EXPECT_EQ(e.out, "done\n") << e.err;
  EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
}

TEST(Refuses, ToResumeARunThatIsBeingTrained) {
  const Workplace w;
  const Ended e =
      w.run(kLong + "> log " + kInBackground +
            "for i in 1 2; do $TRAIN --resume out 2>> why; echo $?; done; echo process $P on host $(uname "
            "-n) > who; kill -INT $P; wait $P");
  EXPECT_EQ(e.status, 130) << e.out;
  EXPECT_EQ(e.out.substr(0, 4), "1\n1\n") << e.out;
  const std::string who = w.read("who"), why = w.read("why");
  const std::string line = "train_imagenet: out: is being trained by " + who.substr(0, who.size() - 1) +
                           "; wait until it has ended, or stop it\n";
  EXPECT_EQ(why, line + line);
  const int64_t steps = Json::parse(w.read("out/summary.json"))["steps"];
  EXPECT_EQ(w.run("$TRAIN --resume out --epochs 0 --steps " + std::to_string(steps + 1)).status, 0);
}

// After kill -9 or a power failure nothing says that the run has ended.
TEST(Stopping, ADirectoryIsFreeWhenItsRunWasKilled) {
  const Workplace w;
  const std::string run = kLong + "--workers 2 --algorithm sgp --resume auto ";
  const Ended e =
      w.run(run + kInBackground + "kill -KILL $P; wait $P; " + run +
            "> second 2>&1 & Q=$!; until grep -qs 'from the beginning' second || ! kill -0 $Q; do sleep "
            "0.05; done; until grep -qs loss out/metrics.jsonl || ! kill -0 $Q; do sleep 0.05; done; "
            "kill -INT $Q; wait $Q");
  EXPECT_EQ(e.status, 130) << e.err << w.read("second");
}

// A job that is put in the queue again may start while its old processes write their last checkpoint.
TEST(Stopping, ResumeAutoWaitsForTheRunThatIsEnding) {
  const Workplace w;
  const std::string run = kLong + "--resume auto ";
  const Ended e =
      w.run(run + kInBackground + run +
            "> second 2>&1 & Q=$!; until grep -qs 'waiting for it to end' second || ! kill -0 $Q; do "
            "sleep 0.05; done; kill -INT $P; wait $P; echo $?; until grep -qs 'going on from' second || "
            "! kill -0 $Q; do sleep 0.05; done; kill -INT $Q; wait $Q; echo $?");
  expect_has(e.out, "130\n");
  EXPECT_EQ(e.out.substr(e.out.size() - 4), "130\n") << e.out << w.read("second");
  expect_has(w.read("second"), "going on from out/checkpoints/step-");
}

TEST(Stopping, ARunWithoutACheckpointResumesFromTheBeginning) {
  const Workplace w;
  const Ended dead = w.run(kLong + kInBackground + "kill -KILL $P; wait $P");
  ASSERT_FALSE(w.has("out/checkpoints"));
  const Ended refused = w.run(std::string(kTiny) + "--output out");
  EXPECT_EQ(refused.status, 2);
  for (const char* way : {"choose another directory", "train_imagenet --resume out", "rm -r out"})
    expect_has(refused.err, way);
  const Ended e = w.run("$TRAIN --resume out --epochs 1");
  EXPECT_EQ(e.status, 0) << e.err;
  expect_has(e.out, "out has no checkpoint: training starts from the beginning");
  EXPECT_EQ(Json::parse(w.read("out/summary.json"))["steps"], 4);
  const Ended no_run = w.run("mkdir runs; $TRAIN --resume runs");
  EXPECT_EQ(no_run.status, 1);
  expect_has(no_run.err, "there is no run in it");
}

TEST(Stopping, ResumesTheCheckpointThatIsNamed) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--steps 6 --checkpoint-every 3steps --output out").status, 0);
  for (const char* name : {"out/checkpoints/step-00000003", "out/checkpoints/step-00000003/"}) {
    const Ended e = w.run(std::string("$TRAIN --resume ") + name +
                          " --steps 7 --checkpoint-every 0 --output else; "
                          "rm -r else");
    expect_has(e.out, "going on from out/checkpoints/step-00000003\n");
  }
  expect_has(w.run("$TRAIN --resume out/checkpoints/step-00000003/ --steps 7").out,
             "going on from out/checkpoints/step-00000003\n");
  const Ended e = w.run("rm out/config.toml; $TRAIN --resume out");
  EXPECT_EQ(e.status, 1) << e.out;
  expect_has(e.err, "out/config.toml: is missing, and with it the flags of this run; restore it");
}

TEST(Stopping, SaysTheNewLengthOfAResumedRunOnce) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--epochs 1 --output out").status, 0);
  const Ended e = w.run("$TRAIN --resume out --steps 6");
  EXPECT_EQ(e.status, 0) << e.err;
  expect_has(e.out, "changed since: length 1 epoch -> 6 steps\n");
  EXPECT_EQ(e.out.find("epochs 1 -> 0"), std::string::npos) << e.out;
}

}  // namespace
}  // namespace skein
