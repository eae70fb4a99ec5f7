// Elastic runs: real processes that die at any time, rank 0 included, and others that take part later.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/model_files.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using nlohmann::json;
using testing_programs::Ended;
using testing_programs::expect_has;

// Slow enough that there is something to interrupt.
const char* kElasticTask =
    "timeout 100 $TRAIN --data synthetic:12x12x1,classes=4,train=960,test=64 --image-size 12 --lr 0.05 "
    "--reference-batch 0 --lr-schedule constant --warmup-epochs 0 --augment none --log-every 1 --threads 1 "
    "--progress none --elastic on --model small-cnn --batch-size 8 ";

// wait_for WORDS N: until the run's events have had these words so often.
const char* kWaitFor =
    "wait_for() { for i in $(seq 800); do n=$(grep -c \"$1\" run/metrics.jsonl 2>/dev/null)\n"
    "[ ${n:-0} -ge $2 ] && break; sleep 0.05; done; }\n";

class Elastic : public ::testing::Test {
 protected:
  // Starts a training, and kills these workers, named by their ranks at the start, when it has
  // taken some steps.
  Ended kill(const std::string& flags, const std::string& ranks) {
    return place_.run(
        kElasticTask + flags +
        " --output run > log & P=$!\n"
        "for i in $(seq 3000); do [ $(grep -c step run/metrics.jsonl 2>/dev/null || true) -gt 8 ] && break; "
        "sleep 0.01; done\n"
        "L=$(pgrep -P $P)\n"
        "for r in " +
        ranks +
        "; do for w in $(pgrep -P $L); do grep -qz \"^RANK=$r$\" /proc/$w/environ && kill -KILL $w; "
        "done; done\n"
        "wait $P; echo status $?");
  }
  json summary(const std::string& run) { return json::parse(place_.read(run + "/summary.json")); }
  testing_programs::Workplace place_;
};

TEST_F(Elastic, AnyWorkerMayDieAndTheOthersFinishTheRun) {
  for (const std::string algorithm :
       {"allreduce", "sgp", "local-sgd --tau 4", "osgp", "ad-psgd", "downpour", "gem", "lsgd --groups 2"})
    for (const std::string victim : {"0", "2", "3"}) {
      place_.run("rm -rf run");
      const Ended e = kill("--workers 4 --restarts 0 --steps 800 --algorithm " + algorithm, victim);
      ASSERT_EQ(e.out, "status 0\n") << algorithm << " without " << victim << e.err << place_.read("log");
      const json s = summary("run");
      EXPECT_EQ(s["steps"], 800);
      EXPECT_EQ(s["workers"], 3);
      ASSERT_EQ(s["recoveries"].size(), 1u) << s;
      expect_has(s["recoveries"][0]["who"][0], "worker " + victim);
      EXPECT_GE(s["recoveries"][0].at("detected_s"), 0);
      EXPECT_LT(s["recoveries"][0].at("detected_s"), 10) << "not by silence";
      EXPECT_FALSE(s["interrupted"]);
    }
}

// Its own process has the last rank. What takes its place is worker 0, beside its training, and then
// a fresh server.
TEST_F(Elastic, AServerAndItsWorkersMayDie) {
  const std::string flags = "--workers 3 --steps 600 --algorithm gem --servers dedicated --restarts ";
  for (const auto& [victim, name] :
       {std::pair("3", "the server: "), {"0", "worker 0: "}, {"1", "worker 1: "}}) {
    place_.run("rm -rf run");
    const Ended e = kill(flags + "0", victim);
    ASSERT_EQ(e.out, "status 0\n") << "without " << victim << e.err << place_.read("log");
    const json s = summary("run");
    EXPECT_EQ(s["steps"], 600);
    EXPECT_EQ(s["workers"], victim == std::string("3") ? 3 : 2);
    ASSERT_EQ(s["recoveries"].size(), 1u) << s;
    expect_has(s["recoveries"][0]["who"][0], name);
  }
  place_.run("rm -rf run");
  const Ended e = place_.run(
      std::string(kWaitFor) + kElasticTask +
      "--workers 2 --epochs 100000 --algorithm gem --servers dedicated --output run > log & P=$!\n"
      "wait_for '\"step\"' 8\n"
      "L=$(pgrep -P $P); for w in $(pgrep -P $L); do grep -qz ^RANK=2$ /proc/$w/environ && kill -KILL $w; "
      "done\nwait_for '\"joined\":1' 1; kill -INT $L; wait $P; echo status $?");
  ASSERT_EQ(e.out, "status 130\n") << e.err << place_.read("log");
  const json s = summary("run");
  EXPECT_EQ(s["workers"], 2);
  ASSERT_EQ(s["recoveries"].size(), 2u) << s["recoveries"];
  expect_has(place_.read("log"), "worker 0 takes its place");
  expect_has(e.err,
             "the server was killed by signal 9 (Killed); a fresh server takes its place in 1 s (1 of 3)");
}

// With SIGTERM to all of them, and with SIGTERM to their launcher, all stop.
TEST_F(Elastic, AWorkerThatIsToldToLeavesTheOthers) {
  const std::string begin =
      std::string(kElasticTask) +
      "--workers 3 --restarts 0 --epochs 100000 --algorithm sgp --output run > log & P=$!\n"
      "for i in $(seq 600); do [ $(grep -c step run/metrics.jsonl 2>/dev/null) -gt 8 ] && break; "
      "sleep 0.05; done 2>/dev/null\nL=$(pgrep -P $P)\n";
  const Ended one =
      place_.run(begin +
                 "kill -TERM $(pgrep -P $L | head -1); for i in $(seq 200); do grep -q '\"membership\"' "
                 "run/metrics.jsonl && [ $(pgrep -P $L | wc -l) = 2 ] && break; sleep 0.05; done; "
                 "pgrep -P $L | wc -l; kill -INT $L; "
                 "wait $P; echo status $?");
  EXPECT_EQ(one.out, "2\nstatus 130\n") << one.err << place_.read("log");
  place_.run("rm -rf run");
  const Ended all = place_.run(begin + "kill -TERM $(pgrep -P $L); wait $P; echo status $?");
  EXPECT_EQ(all.out, "status 130\n") << all.err << place_.read("log");
}

TEST_F(Elastic, TheLastWorkerStopsWithACheckpointWhenItIsToldToLeave) {
  const Ended e =
      place_.run(std::string(kWaitFor) + kElasticTask +
                 "--workers 2 --restarts 0 --epochs 100000 --algorithm sgp --output run > log & P=$!\n"
                 "wait_for '\"step\"' 8; L=$(pgrep -P $P); kill -KILL $(pgrep -P $L | head -1)\n"
                 "wait_for '\"membership\"' 1; kill -TERM $(pgrep -P $L); wait $P; echo status $?");
  EXPECT_EQ(e.out, "status 130\n") << e.err << place_.read("log");
  expect_has(place_.read("log"), "interrupted after step");
  EXPECT_FALSE(std::filesystem::is_empty(place_.path() / "run/checkpoints"));
}

TEST_F(Elastic, AFreshWorkerTakesTheDeadOnesPlace) {
  const Ended e = place_.run(
      std::string(kWaitFor) + kElasticTask +
      "--workers 3 --epochs 100000 --algorithm allreduce --output run > log & P=$!\nwait_for '\"step\"' 8\n"
      "L=$(pgrep -P $P); for w in $(pgrep -P $L); do grep -qz ^RANK=0$ /proc/$w/environ && kill -KILL $w; "
      "done\n"
      "wait_for '\"joined\":1' 1; kill -INT $L; wait $P; echo status $?");
  ASSERT_EQ(e.out, "status 130\n") << e.err << place_.read("log");
  const json s = summary("run");
  EXPECT_EQ(s["workers"], 3);
  ASSERT_GE(s["recoveries"].size(), 2u) << s["recoveries"];
  EXPECT_EQ(s["recoveries"][1]["joined"], 1);
  EXPECT_EQ(s["worker_hashes"][0], s["worker_hashes"][2]);
}

// One calls before worker 0 dies, and one after that.
TEST_F(Elastic, StrangersOfAllEpochsAreCounted) {
  const Ended e =
      place_.run(std::string(kWaitFor) +
                 "call() { p=$(grep -o 'port\": *[0-9]*' run/membership.json | tail -1); exec "
                 "9<>/dev/tcp/127.0.0.1/${p##*[: ]}\n"
                 "printf '%0300d' 0 >&9; cat <&9 > answer; exec 9<&-; }\n" +
                 kElasticTask +
                 "--workers 3 --restarts 0 --epochs 100000 --algorithm sgp --output run > log & P=$!\n"
                 "wait_for '\"step\"' 8; call; L=$(pgrep -P $P)\n"
                 "for w in $(pgrep -P $L); do grep -qz ^RANK=0$ /proc/$w/environ && kill -KILL $w; done\n"
                 "wait_for '\"membership\"' 1; call; kill -INT $L; wait $P; echo status $?");
  ASSERT_EQ(e.out, "status 130\n") << e.err << place_.read("log");
  EXPECT_EQ(summary("run")["environment"]["refused_callers"], 2) << e.err;
  expect_has(e.err, " refused 2 callers without this job's key");
  expect_has(place_.read("run/report.html"), "2 callers without this job's key");
}

// Three workers cannot be paired, so the graph that was given has to give way.
TEST_F(Elastic, AGraphThatTheOthersCannotHaveGivesWay) {
  const Ended e =
      kill("--workers 4 --restarts 0 --steps 800 --algorithm sgp --topology bipartite-linear", "1");
  ASSERT_EQ(e.out, "status 0\n") << e.err << place_.read("log");
  expect_has(place_.read("log"), "; 3 workers take the default instead");
}

TEST_F(Elastic, RefusesWhatCannotBeTakenOver) {
  for (const auto& [flags, message] :
       {std::pair("--algorithm sgp --split dirichlet:1", "--split dirichlet:1"),
        {"--algorithm sgp --record order", "--record"}}) {
    const Ended e = place_.run(std::string(kElasticTask) + "--workers 2 --steps 2 --output refused " + flags);
    EXPECT_EQ(e.status, 2) << flags << e.err;
    expect_has(e.err, message);
  }
}

// Its flags of the algorithm are for as many workers as there will be. One that cannot train ends alone.
TEST_F(Elastic, ANewcomerNeedsNoFlagsButTheJobsAddress) {
  const Ended e =
      place_.run(std::string(kWaitFor) +
                 "head -c 32 /dev/urandom > key; chmod 600 key; export SKEIN_KEY_FILE=$PWD/key\n" +
                 std::string(kElasticTask) +
                 "--workers 2 --epochs 100000 --algorithm easgd --output run > log 2>&1 & P=$!\n"
                 "wait_for '\"step\"' 8; L=$(pgrep -P $P)\n"
                 "$TRAIN --join run --lr 0.7 2> why; echo status $?\n"
                 "$TRAIN --join run --model mlp 2> which; echo status $?\n"
                 "timeout 60 $TRAIN --join run --device cuda:99 2> broken; echo status $?\n"
                 "timeout 60 $TRAIN --join run --threads 1 > late 2>&1 & wait_for '\"joined\":1' 1\n"
                 "kill -INT $L; wait $P; echo status $?");
  EXPECT_EQ(e.out, "status 2\nstatus 2\nstatus 2\nstatus 130\n")
      << e.err << place_.read("log") << place_.read("late");
  expect_has(place_.read("why"), "--lr 0.7: the job at run has lr 0.05");
  expect_has(place_.read("which"), "--model mlp: the job at run has model small-cnn");
  expect_has(place_.read("broken"), "--device");
  expect_has(place_.read("log"), "a newcomer is gone before its first step: 2 workers continue");
  EXPECT_EQ(summary("run")["workers"], 3);
}

// As srun, mpirun and torchrun do: the variables are those of a rank of the job, or of a larger job.
TEST_F(Elastic, WorkersThatALauncherStartsBesideARunningJobTakePartInIt) {
  const Ended e = place_.run(
      std::string(kWaitFor) +
      "head -c 32 /dev/urandom > key; chmod 600 key; export SKEIN_KEY_FILE=$PWD/key MASTER_ADDR=127.0.0.1 "
      "MASTER_PORT=$((12000 + $$ % 20000))\n"
      "start() { " +
      kElasticTask +
      "--epochs 100000 --algorithm allreduce --output run --resume auto > log$1 2>&1 & }\n"
      "for r in 0 1 2; do RANK=$r WORLD_SIZE=3 start $r; P=\"$P $!\"; done; wait_for '\"step\"' 8\n"
      "pkill -KILL -P ${P##* }; wait_for '\"membership\"' 1\n"
      "RANK=2 WORLD_SIZE=3 start again; P=\"$P $!\"; wait_for '\"joined\":1' 1\n"
      "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 start more; P=\"$P $!\"; wait_for '\"joined\":1' 2\n"
      "$TRAIN --data synthetic:12x12x1,classes=4 --image-size 12 --model small-cnn --output run; echo status "
      "$?\n"
      "pkill -INT -P ${P##* }; for p in $P; do wait $p; echo $?; done");
  EXPECT_EQ(e.out, "status 1\n130\n130\n137\n130\n130\n")
      << e.err << place_.read("logagain") << place_.read("logmore");
  expect_has(e.err, "or take part in it with --join run");
  EXPECT_EQ(summary("run")["workers"], 4);
}

// Their launcher decides for half of them. A worker that is heard of again is told, and makes room
// for a fresh one, also if it was stopped while it wrote a checkpoint, whose files the other has
// taken away meanwhile.
TEST_F(Elastic, OfTwoWorkersOneMayFallSilent) {
  for (const std::string which : {"head", "tail"}) {
    place_.run("rm -rf run");
    const Ended e = place_.run(
        std::string(kWaitFor) + kElasticTask +
        "--workers 2 --deadline 4 --restarts 1 --epochs 100000 --algorithm allreduce --checkpoint-every "
        "2steps "
        "--output run > log 2>&1 & P=$!\nwait_for '\"step\"' 8; L=$(pgrep -P $P); W=$(pgrep -P $L | " +
        which +
        " -1)\nfor i in $(seq 400); do ls -l /proc/$W/fd | grep -q step-.*partial && break; done\n"
        "kill -STOP $W; wait_for '\"membership\"' 1; kill -CONT $W; wait_for '\"membership\"' 2\n"
        "kill -INT $L; wait $P; echo status $?; grep '\"membership\"' run/metrics.jsonl");
    const std::string log = place_.read("log");
    expect_has(e.out, "status 130\n");
    expect_has(e.out, "not heard of for");
    expect_has(e.out, "\"joined\":1");
    expect_has(log, "was given up by the others; a fresh worker takes its place in 1 s (1 of 1)");
  }
}

// The task with other words in place of these.
std::string with(const std::string& old, const std::string& words) {
  std::string task = kElasticTask;
  return task.replace(task.find(old), old.size(), words);
}

// Whoever ends last removes the note by which newcomers would look for them, whatever has started them.
TEST_F(Elastic, WorkersThatAllMeetAnErrorLeaveNoNoteBehind) {
  const std::string task = with("--lr 0.05", "--lr 1e20") + "--epochs 100 --algorithm allreduce ";
  const Ended launched = place_.run(task +
                                    "--workers 3 --restarts 0 --output run > log 2>&1; echo status $?\n"
                                    "$TRAIN --join run; echo status $?");
  EXPECT_EQ(launched.out, "status 1\nstatus 1\n") << place_.read("log");
  expect_has(place_.read("log"), "is not a finite number");
  expect_has(launched.err, "there is no run/membership.json");
  place_.run("rm -rf run");
  const Ended by_hand = place_.run(
      "head -c 32 /dev/urandom > key; chmod 600 key; export SKEIN_KEY_FILE=$PWD/key MASTER_ADDR=127.0.0.1 "
      "MASTER_PORT=$((12000 + $$ % 20000))\n"
      "for r in 0 1 2; do RANK=$r WORLD_SIZE=3 " +
      task + "--output run > log$r 2>&1 & P=\"$P $!\"; done; for p in $P; do wait $p; echo $?; done");
  EXPECT_EQ(by_hand.out, "1\n1\n1\n") << place_.read("log0");
  EXPECT_TRUE(place_.has("run/metrics.jsonl"));
  EXPECT_FALSE(place_.has("run/membership.json"));
  EXPECT_FALSE(place_.has("run/membership"));
}

TEST_F(Elastic, AStartThatFailsAfterTheMeetingLeavesNoDirectory) {
  const std::string failing = with("--batch-size 8", "--batch-size 5000") + "--algorithm allreduce ";
  const Ended launched = place_.run(failing + "--workers 2 --output run; echo status $?");
  EXPECT_EQ(launched.out, "status 2\n");
  expect_has(launched.err, "are more than the 960 training images");
  EXPECT_FALSE(place_.has("run"));
  const Ended by_hand = place_.run(
      "head -c 32 /dev/urandom > key; chmod 600 key; export SKEIN_KEY_FILE=$PWD/key MASTER_ADDR=127.0.0.1 "
      "MASTER_PORT=$((12000 + $$ % 20000))\n"
      "for r in 0 1; do RANK=$r WORLD_SIZE=2 " +
      failing + "--output some/run & P=\"$P $!\"; done; for p in $P; do wait $p; echo $?; done");
  EXPECT_EQ(by_hand.out, "2\n2\n");
  expect_has(by_hand.err, "are more than the 960 training images");
  EXPECT_FALSE(place_.has("some"));
}

TEST_F(Elastic, HalfOfTheWorkersMayDieAtOnce) {
  const Ended e = kill("--workers 4 --restarts 0 --steps 800 --algorithm allreduce", "0 1");
  ASSERT_EQ(e.out, "status 0\n") << e.err << place_.read("log");
  EXPECT_EQ(summary("run")["workers"], 2);
}

}  // namespace
}  // namespace skein
