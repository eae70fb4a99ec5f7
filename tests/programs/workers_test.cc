// train_imagenet with several workers: the same sums as with one; resumed; interrupted; with lost workers.
#include <nlohmann/json.hpp>

#include <cmath>

#include "tests/support/model_files.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using nlohmann::json;
using testing_programs::Ended;

const char* kWorkersTask =
    "timeout 100 $TRAIN --data synthetic:12x12x1,classes=4,train=640,test=64 --image-size 12 --lr 0.05 "
    "--reference-batch 0 "
    "--lr-schedule constant --warmup-epochs 0 --augment none --log-every 5 --threads 1 ";

class Workers : public ::testing::Test {
 protected:
  Ended train(const std::string& flags) { return place_.run(kWorkersTask + flags); }
  json summary(const std::string& run) { return json::parse(place_.read(run + "/summary.json")); }
  double models_differ(const std::string& a, const std::string& b) {
    return testing_programs::models_differ(place_.path() / a, place_.path() / b);
  }
  testing_programs::Workplace place_;
};

TEST_F(Workers, FourOfBatchBAreOneOfBatchFourB) {
  const std::string flags = "--model mlp --algorithm allreduce --steps 20 --momentum 0.9 ";
  ASSERT_EQ(train(flags + "--workers 1 --batch-size 32 --output one").status, 0) << place_.read(".err");
  ASSERT_EQ(train(flags + "--workers 4 --batch-size 8 --output four").status, 0) << place_.read(".err");
  EXPECT_LT(models_differ("one", "four"), 1e-5);
  EXPECT_EQ(summary("four")["workers"], 4);
  const json hashes = summary("four")["worker_hashes"];
  EXPECT_EQ(hashes.size(), 4u);
  EXPECT_EQ(hashes[0], hashes[3]);
}

TEST_F(Workers, ResumedEqualsUninterruptedForEveryAlgorithm) {
  for (const std::string flags :
       {"--algorithm allreduce", "--algorithm local-sgd --tau 3", "--algorithm d-psgd --no-final-average",
        "--algorithm sgp --peers 2 --no-final-average", "--algorithm sgp --bn-policy mix",
        "--algorithm osgp --no-final-average", "--algorithm cocod --tau 3"}) {
    const std::string all = "--model small-cnn --workers 3 --batch-size 8 " + flags;
    place_.run("rm -rf whole part");
    ASSERT_EQ(train(all + " --steps 14 --output whole").status, 0) << flags << place_.read(".err");
    ASSERT_EQ(train(all + " --steps 8 --output part").status, 0) << flags << place_.read(".err");
    ASSERT_EQ(place_.run("timeout 100 $TRAIN --resume part --steps 14").status, 0) << place_.read(".err");
    EXPECT_EQ(summary("part")["hash"], summary("whole")["hash"]) << flags;
    EXPECT_EQ(summary("part")["worker_hashes"], summary("whole")["worker_hashes"]) << flags;
  }
}

TEST_F(Workers, EveryTransportGivesTheSameBits) {
  for (const std::string way : {"local", "shared", "tcp", "ucx"})
    ASSERT_EQ(
        train("--model small-cnn --algorithm sgp --no-final-average --workers 2 --batch-size 8 --steps 6 "
              "--transport " +
              way + " --elastic off --output " + way)
            .status,
        0)
        << way << place_.read(".err");
  EXPECT_EQ(summary("local")["worker_hashes"], summary("shared")["worker_hashes"]);
  EXPECT_EQ(summary("local")["worker_hashes"], summary("tcp")["worker_hashes"]);
  EXPECT_EQ(summary("local")["worker_hashes"], summary("ucx")["worker_hashes"]);
  const json environment = summary("tcp")["environment"];
  EXPECT_NE(environment["transport"].get<std::string>().find("tcp, sealed with"), std::string::npos)
      << environment;
  for (const char* what :
       {"refused_callers", "refused_messages", "forged_messages", "truncated_messages", "refused_datagrams"})
    EXPECT_EQ(environment[what], 0) << what;
}

// Starts endless training, does `deed` to it once it runs, and returns how it ended.
Ended disturb(const testing_programs::Workplace& place, const std::string& flags, const std::string& deed,
              const std::string& workers = "3") {
  return place.run(std::string(kWorkersTask) +
                   "--model small-cnn --batch-size 8 --epochs 100000 --checkpoint-every 0 --workers " +
                   workers + ' ' + flags +
                   " --output run > log & P=$!\n"
                   "for i in $(seq 600); do grep -q step run/metrics.jsonl 2>/dev/null && break; sleep 0.1; "
                   "done; sleep 0.5\n"
                   "L=$(pgrep -P $P); W=$(pgrep -P $L | sed -n 2p)\n" +  // timeout, launcher, worker 1
                   deed +
                   "; wait $P; echo status $?; ls run/checkpoints; sleep 0.2; pgrep -P $L");
}

TEST_F(Workers, CtrlCEndsAllAtOneCommonStep) {
  const Ended e = disturb(place_, "--algorithm sgp", "kill -INT $L");
  EXPECT_NE(e.out.find("status 130\nstep-"), std::string::npos) << e.out << e.err << place_.read("log");
  EXPECT_EQ(place_.run("timeout 100 $TRAIN --resume run --epochs 0 --steps 3").status, 2);  // already past it
  EXPECT_NE(place_.read("log").find("interrupted after step"), std::string::npos);
}

TEST_F(Workers, AKilledWorkerIsNamedAndTheRestSaveAndResume) {
  for (const std::string algorithm : {"allreduce", "sgp", "local-sgd"}) {
    place_.run("rm -rf run");
    const Ended e = disturb(place_, "--elastic off --algorithm " + algorithm, "kill -KILL $W");
    EXPECT_NE(e.out.find("status 1\nstep-"), std::string::npos) << algorithm << e.out << e.err;
    EXPECT_NE(e.err.find("worker 1 is lost: its process has ended; the others wrote a checkpoint of step "),
              std::string::npos)
        << algorithm << e.err;
    const int64_t step = std::stoll(e.out.substr(e.out.find("step-") + 5));
    const Ended on = place_.run(text("timeout 100 $TRAIN --resume run --epochs 0 --steps ", step + 5));
    EXPECT_EQ(on.status, 0) << algorithm << on.err;
  }
}

TEST_F(Workers, AStoppedWorkerIsNamedWithinTheDeadline) {
  const Ended e = disturb(place_, "--elastic off --algorithm sgp --deadline 3", "kill -STOP $W");
  EXPECT_NE(e.out.find("status 1\nstep-"), std::string::npos) << e.out << e.err;
  EXPECT_NE(e.err.find("worker 1 is lost"), std::string::npos) << e.err;
}

// Like after a network split, each side finds the other silent.
TEST_F(Workers, OfTwoSidesOnlyTheLargerOrThatOfWorkerZeroWritesACheckpoint) {
  const std::string all = "--elastic off --algorithm local-sgd --deadline 8";
  const auto stop = [](const std::string& ranks) {
    return "for w in $(pgrep -P $L); do grep -qz '^RANK=[" + ranks +
           "]$' /proc/$w/environ && kill -STOP $w; done";
  };
  for (const auto& [others, writes] : {std::pair("123", false), {"01", false}, {"23", true}, {"0", true}}) {
    place_.run("rm -rf run");
    const Ended e = disturb(place_, all, stop(others), "4");
    EXPECT_NE(e.out.find("status 1\n"), std::string::npos) << others << e.out << e.err;
    EXPECT_EQ(e.out.find("\nstep-") != std::string::npos, writes) << others << e.out << e.err;
    EXPECT_EQ(
        e.err.find("this side writes no checkpoint, since the other may; no checkpoint was written yet") ==
            std::string::npos,
        writes)
        << others << e.err;
  }
}

// The last checkpoint does not fit on the disk, but the model does, because it has no momentum.
TEST_F(Workers, AFullDiskAtTheEndOfATrainingStillLeavesTheModel) {
  ASSERT_EQ(train("--model mlp --steps 6 --output whole").status, 0) << place_.read(".err");
  const Ended e = place_.run("k=$(($(stat -c %s whole/model.safetensors) / 1024 + 60)); ulimit -f $k; " +
                             std::string(kWorkersTask) + "--model mlp --steps 6 --output full");
  EXPECT_EQ(e.status, 1) << e.err;
  EXPECT_NE(e.err.find("; no checkpoint was written yet; the model was written: full/model.safetensors"),
            std::string::npos)
      << e.err;
  EXPECT_EQ(models_differ("whole", "full"), 0);
}

TEST_F(Workers, RefusesInOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"--workers 0", "workers"},
      {"--workers 3", "sgd has no peers"},
      {"--workers 3 --algorithm sgp --topology bipartite-linear", "even number of workers, not 3"},
      {"--workers 3 --algorithm sgp --peers 3", "offers 2 with 3 workers"},
      {"--workers 3 --algorithm d-psgd --topology exponential --peers 1", "d-psgd needs"},
      {"--workers 2 --algorithm sgp --batch-size 1000", "more than the 640 training images"},
      {"--workers 2 --algorithm sgp --model nothing", "nothing"},
      {"--workers 2 --algorithm sgp --output /proc/nowhere", "/proc/nowhere"},
  };
  for (const auto& [flags, message] : cases) {
    const Ended e = train(std::string("--steps 2 ") + flags);
    EXPECT_NE(e.status, 0) << flags;
    EXPECT_NE(e.err.find(message), std::string::npos) << flags << '\n' << e.err;
    EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << flags << '\n' << e.err;
  }
}

TEST_F(Workers, RefusesMoreWorkersOnResumeThanThereAreImagesInAStep) {
  ASSERT_EQ(train("--model mlp --algorithm sgp --workers 2 --batch-size 8 --steps 3 --output run").status, 0);
  const Ended e = place_.run("timeout 100 $TRAIN --resume run --workers 17 --steps 6");
  EXPECT_EQ(e.status, 2);
  EXPECT_NE(e.err.find("16 images a step over all of them, too few for 17"), std::string::npos) << e.err;
}

}  // namespace
}  // namespace skein
