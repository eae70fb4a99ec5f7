// Worker processes: started, met, killed, stopped, and never left behind.
#include <gtest/gtest.h>

#include <csignal>

#include "apps/launch/supervisor.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using testing_programs::Ended;

// Endless averaging to interrupt. The name of the output identifies our processes.
class Launch : public testing::Test {
 protected:
  Ended run(const std::string& script) {
    return place_.run("MARK=" + place_.path().filename().string() +
                      "; LONG=\"$GOSSIP --workers 3 --size 1000 --rounds 100000000 --deadline 20 --output "
                      "$MARK{rank}.npy\"\n"
                      "ours() { pgrep -f -- \"--output $MARK\" | grep -v $$; }\n"
                      "workers() { pgrep -P $1 -f -- \"--output $MARK\"; }\n"
                      // All three catch SIGINT, so they have met: the second bit of the mask.
                      "ready() { for i in $(seq 600); do [ \"$(for w in $(workers $P); do cat "
                      "/proc/$w/status; done 2>/dev/null | grep -c 'SigCgt:.*[2367abef]$')\" = 3 ] && sleep "
                      "0.2 && return; sleep 0.1; done; echo not ready; }\n"
                      "gone() { for i in $(seq 600); do [ -z \"$(pgrep -f \"^$GOSSIP.*--output $MARK\")\" ] "
                      "&& echo gone && return; "
                      "sleep 0.1; done; echo left; pgrep -fa -- \"--output $MARK\"; }\n" +
                      script);
  }
  testing_programs::Workplace place_;
};

TEST_F(Launch, EndsAllWorkersOnCtrlC) {
  const Ended e = run("$LONG & P=$!; ready; workers $P | wc -l; kill -INT $P; wait $P; echo status $?; gone");
  EXPECT_EQ(e.out.substr(0, 2), "3\n") << e.err;
  EXPECT_NE(e.out.find("stopped early"), std::string::npos) << e.out;
  EXPECT_NE(e.out.find("status 130\ngone\n"), std::string::npos) << e.out << e.err;
}

// Ctrl-Z, a pause longer than any timeout, fg: all workers stand still, and none misses another.
TEST_F(Launch, CtrlZStopsAllWorkersAndTheTimeCountsForNothing) {
  const Ended e =
      run("states() { for p in $P $(workers $P); do cut -d' ' -f3 /proc/$p/stat; done | sort | uniq -c | "
          "xargs; }\n"
          "${LONG/--deadline 20/--deadline 8} & P=$!; ready; kill -TSTP $P\n"
          "for i in $(seq 600); do [ \"$(states)\" = '4 T' ] && break; sleep 0.05; done; states\n"
          "sleep 9; states; kill -CONT $P; for i in $(seq 600); do [[ $(states) = *T* ]] || break; sleep "
          "0.05; done\n"
          "states | grep -c T; kill -INT $P; wait $P; echo status $?; gone");
  EXPECT_EQ(e.out.substr(0, 10), "4 T\n4 T\n0\n") << e.out << e.err;
  EXPECT_NE(e.out.find("status 130\ngone\n"), std::string::npos) << e.out << e.err;
  EXPECT_EQ(e.err.find("lost"), std::string::npos) << e.err;
}

TEST_F(Launch, LeavesNoWorkerWhenItIsKilledItself) {
  const Ended e = run("$LONG & P=$!; ready; kill -KILL $P; wait $P; gone");
  EXPECT_EQ(e.out, "gone\n") << e.err;
}

// The others continue to average; workers_test checks that they end when they must.
TEST_F(Launch, NamesAKilledWorkerAndEndsTheOthersWhenTold) {
  const Ended e =
      run("$LONG & P=$!; ready; kill -KILL $(workers $P | tail -1); for i in $(seq 300); do grep -qs 'rank "
          "2' .err && break; "
          "sleep 0.1; done; kill -INT $P; wait $P; "
          "echo status $?; gone");
  EXPECT_NE(e.out.find("status 130\ngone\n"), std::string::npos) << e.out << e.err;
  EXPECT_NE(e.err.find("worker 2 was killed by signal 9"), std::string::npos) << e.err;
  EXPECT_NE(e.err.find("rank 2"), std::string::npos) << e.err;
}

TEST_F(Launch, TakesRanksFromTheEnvironment) {
  const Ended e =
      run("head -c 32 /dev/urandom > key; chmod 600 key; export SKEIN_KEY_FILE=$PWD/key WORLD_SIZE=3 "
          "MASTER_ADDR=127.0.0.1 "
          "MASTER_PORT=$((12000 + $$ % 20000))\n"
          "for r in 1 2 0; do RANK=$r $GOSSIP --size 10 --rounds 3 & done; wait; gone");
  EXPECT_NE(e.out.find("averaged between 3 workers"), std::string::npos) << e.out << e.err;
}

// Workers started by hand have a key of their job alone. A killed job left a note for the same address.
TEST_F(Launch, DrawsAKeyForEachJobStartedByHand) {
  const Ended e =
      run("unset SKEIN_KEY_FILE; export HOME=$PWD WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 "
          "MASTER_PORT=$((12000 + ($$ + 5555) % 20000))\n"
          "job() { for r in 1 2; do RANK=$r $GOSSIP --size 10 --rounds 3 & done; sleep 0.3\n"
          "RANK=0 $GOSSIP --size 10 --rounds 3; wait; ls -A .config/skein | wc -l; }\n"
          "job; RANK=0 $GOSSIP --size 10 --rounds 3 & P=$!\n"
          "until ls .config/skein/job-* 2>/dev/null; do kill -0 $P || break; sleep 0.05; done > note\n"
          "stat -c %a $(cat note); kill -9 $P; wait $P; ls .config/skein | wc -l; job");
  const size_t first = e.out.find("averaged between 3 workers");
  ASSERT_NE(first, std::string::npos) << e.out << e.err;
  EXPECT_NE(e.out.find("averaged between 3 workers", first + 1), std::string::npos) << e.out << e.err;
  EXPECT_NE(e.out.find("\n0\n600\n1\n"), std::string::npos) << e.out << e.err;
  EXPECT_EQ(e.out.substr(e.out.size() - 2), "0\n") << e.out << e.err;
}

// Nothing says where rank 0 is, and there is a note of a killed job.
TEST_F(Launch, MeetsByANoteUnderMpi) {
  const Ended e =
      run("printf \"skein meeting 1\\nhosts 127.0.0.1\\nport 9\\nkey $(printf %064d 7)\\n\" > "
          ".skein-meeting-mpi\n"
          "chmod 600 .skein-meeting-mpi; export OMPI_COMM_WORLD_SIZE=3\n"
          "for r in 1 2; do OMPI_COMM_WORLD_RANK=$r $GOSSIP --size 10 --rounds 3 & done; sleep 0.3\n"
          "OMPI_COMM_WORLD_RANK=0 $GOSSIP --size 10 --rounds 3; wait; ls -A | grep -c meeting");
  EXPECT_NE(e.out.find("averaged between 3 workers"), std::string::npos) << e.out << e.err;
  EXPECT_EQ(e.out.substr(e.out.size() - 2), "0\n") << e.out;
}

TEST_F(Launch, TrainsUnderMpiWithTheNoteInTheRunsDirectory) {
  const Ended e =
      run("export PMI_SIZE=2\nfor r in 0 1; do PMI_RANK=$r $TRAIN --data "
          "synthetic:8x8x1,classes=3,train=64,test=30 "
          "--model mlp --algorithm sgp --batch-size 8 --steps 4 --threads 1 --output runs/one || echo failed "
          "& done; "
          "wait; ls -A runs/one | grep -c meeting");
  EXPECT_NE(e.out.find("2 workers by sgp"), std::string::npos) << e.out << e.err;
  EXPECT_EQ(e.out.substr(e.out.size() - 2), "0\n") << e.out;
}

TEST_F(Launch, SaysWhereItWaitedForANoteThatNeverCame) {
  const Ended e = run("PMI_RANK=1 PMI_SIZE=2 $GOSSIP --size 10 --rounds 3 --deadline 0.5");
  EXPECT_EQ(e.status, 1);
  EXPECT_NE(
      e.err.find("/.skein-meeting-mpi: was rank 0 started, and is that directory the same on all hosts?"),
      std::string::npos)
      << e.err;
}

TEST_F(Launch, RefusesANoteThatOthersCanRead) {
  const Ended e =
      run("touch .skein-meeting-mpi; PMI_RANK=1 PMI_SIZE=2 $GOSSIP --size 10 --rounds 3 --deadline 1");
  EXPECT_NE(e.err.find("chmod 600"), std::string::npos) << e.err;
}

TEST_F(Launch, NamesAWorkerThatNeverArrives) {
  const Ended e =
      run("head -c 32 /dev/urandom > key; chmod 600 key; export SKEIN_KEY_FILE=$PWD/key WORLD_SIZE=3 "
          "MASTER_ADDR=127.0.0.1 "
          "MASTER_PORT=$((12000 + ($$ + 7777) % 20000))\n"
          "for r in 0 2; do RANK=$r $GOSSIP --size 10 --rounds 3 --deadline 4 || echo failed & done; wait");
  EXPECT_EQ(e.out, "failed\nfailed\n");
  EXPECT_NE(e.err.find("no rank 1 after 4 s"), std::string::npos) << e.err;
}

// A fake torchrun agent: a store that listens at MASTER_PORT and does not answer our workers.
constexpr const char* kAgent =
    "head -c 32 /dev/urandom > key; chmod 600 key\n"
    "python3 -c 'import socket,time; s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen(); "
    "print(s.getsockname()[1],flush=True); time.sleep(300)' > port & AGENT=$!\n"
    "until [ -s port ]; do sleep 0.05; done\n"
    "export SKEIN_KEY_FILE=$PWD/key WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(cat port) "
    "TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_USE_AGENT_STORE=True\n";

TEST_F(Launch, MeetsBesideTorchrunsAgent) {
  const Ended e =
      run(kAgent + std::string("for r in 1 2 0; do RANK=$r $GOSSIP --size 10 --rounds 3 & P=\"$P $!\"; done\n"
                               "wait $P; kill $AGENT"));
  EXPECT_NE(e.out.find("averaged between 3 workers"), std::string::npos) << e.out << e.err;
  EXPECT_EQ(e.err, "");
}

// Workers of an abandoned start do not meet those of the next one, although key and address are the same.
TEST_F(Launch, TellsTheStartsOfATorchrunJobApart) {
  const Ended e = run(
      kAgent + std::string("RANK=0 $GOSSIP --size 10 --rounds 3 --deadline 100 & OLD=$!\n"
                           "for r in 0 1 2; do TORCHELASTIC_RESTART_COUNT=1 RANK=$r $GOSSIP --size 10 "
                           "--rounds 3 & P=\"$P $!\"; done\n"
                           "wait $P; echo met; kill -0 $OLD && echo still alone; kill $OLD $AGENT; wait"));
  EXPECT_NE(e.out.find("averaged between 3 workers"), std::string::npos) << e.out << e.err;
  EXPECT_NE(e.out.find("met\nstill alone\n"), std::string::npos) << e.out << e.err;
}

TEST_F(Launch, StartsWorkersOfItsOwnUnderAnAgent) {
  const Ended e =
      run(kAgent + std::string("unset WORLD_SIZE; $GOSSIP --workers 2 --size 10 --rounds 3; kill $AGENT"));
  EXPECT_NE(e.out.find("averaged between 2 workers"), std::string::npos) << e.out << e.err;
}

TEST_F(Launch, SaysWhenThePortIsTaken) {
  const Ended e = run(
      "head -c 32 /dev/urandom > key; chmod 600 key; export SKEIN_KEY_FILE=$PWD/key WORLD_SIZE=2 "
      "MASTER_ADDR=127.0.0.1 "
      "MASTER_PORT=$((12000 + ($$ + 3333) % 20000))\n"
      "RANK=0 $GOSSIP --size 10 --rounds 3 --deadline 30 2>/dev/null & P=$!\n"
      "until (: < /dev/tcp/127.0.0.1/$MASTER_PORT) 2>/dev/null; do kill -0 $P || break; sleep 0.05; done\n"
      "RANK=0 $GOSSIP --size 10 --rounds 3; kill $P; wait");
  EXPECT_NE(e.err.find("is in use on this host"), std::string::npos) << e.err;
}

TEST_F(Launch, RefusesKeysThatOthersCanRead) {
  const Ended e =
      run("head -c 32 /dev/urandom > key; chmod 644 key\n"
          "SKEIN_KEY_FILE=$PWD/key RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29444 $GOSSIP "
          "--size 10 --rounds 3");
  EXPECT_EQ(e.status, 1);
  EXPECT_NE(e.err.find("chmod 600"), std::string::npos) << e.err;
}

TEST_F(Launch, RefusesWhatCannotBe) {
  const auto refused = [&](const std::string& words) { return run(words + " --size 10 --rounds 3").err; };
  EXPECT_NE(refused("$GOSSIP --workers 2000000000").find("--workers 2000000000: from 1 to 65536"),
            std::string::npos);
  EXPECT_NE(refused("RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=70000 $GOSSIP")
                .find("MASTER_PORT=70000: ports are numbered from 1 to 65535"),
            std::string::npos);
  EXPECT_NE(refused("printf 'first x\\nend\\n' | SKEIN_HOST_PART=1 $GOSSIP --hosts a,b")
                .find("SKEIN_HOST_PART is set, but"),
            std::string::npos);
  EXPECT_NE(refused("$GOSSIP --hosts a:2000000000,b:2000000000").find("more workers than there can be"),
            std::string::npos);
}

TEST_F(Launch, RefusesContradictions) {
  EXPECT_NE(run("RANK=0 $GOSSIP --size 10 --rounds 3").err.find("WORLD_SIZE is not"), std::string::npos);
  EXPECT_NE(run("RANK=2 WORLD_SIZE=2 $GOSSIP --size 10 --rounds 3").err.find("ranks count from 0"),
            std::string::npos);
  EXPECT_NE(run("RANK=0 WORLD_SIZE=2 $GOSSIP --workers 3 --size 10 --rounds 3").err.find("WORLD_SIZE=2"),
            std::string::npos);
}

// The status of a job whose workers end like this: by status, by a signal (above 128), or not
// at all (-1: stopped).
int status_of(apps::Loss loss, const std::vector<int>& ends) {
  apps::Supervisor team(loss, 0.3);
  for (size_t i = 0; i < ends.size(); ++i)
    team.start("worker " + std::to_string(i), {}, [&](size_t) {
      if (ends[i] < 0) raise(SIGSTOP);
      if (ends[i] > 128) raise(ends[i] - 128);
      _exit(ends[i]);
    });
  return team.run();
}

TEST(Supervisor, AJobThatSurvivedItsLostWorkersEndsWell) {
  using apps::Loss;
  for (const Loss loss : {Loss::kIsSurvived, Loss::kOfFirstEnds}) {
    EXPECT_EQ(status_of(loss, {0, 0, 137}), 0);
    EXPECT_EQ(status_of(loss, {0, apps::kExitGivenUp, 0}), 0);
    EXPECT_EQ(status_of(loss, {130, 137, 130}), 130);
    EXPECT_EQ(status_of(loss, {2, 2, 2}), 2);
    EXPECT_EQ(status_of(loss, {137, 137}), 137);
  }
  EXPECT_EQ(status_of(Loss::kIsSurvived, {137, 0, 0}), 0);
  EXPECT_EQ(status_of(Loss::kOfFirstEnds, {137, 1, 1}), 1);
  EXPECT_EQ(status_of(Loss::kOfFirstEnds, {0, 1, 0}), 0);
  EXPECT_EQ(status_of(Loss::kIsSurvived, {0, 1, 0}), 1);
  EXPECT_EQ(status_of(Loss::kEndsAll, {0, 0, 137}), 137);
}

TEST(Supervisor, KillsWhoeverIsLeftStandingWhenTheOthersAreThrough) {
  EXPECT_EQ(status_of(apps::Loss::kIsSurvived, {0, -1, 0}), 0);
  EXPECT_EQ(status_of(apps::Loss::kOfFirstEnds, {0, 0, -1}), 0);
  EXPECT_EQ(status_of(apps::Loss::kEndsAll, {1, 1, -1}), 1);
}

}  // namespace
}  // namespace skein
