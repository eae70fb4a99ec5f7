// Worker processes: started, met, killed, stopped, and never left behind.
#include <gtest/gtest.h>

#include "tests/program.h"

namespace skein {
namespace {

using testing_programs::Ended;

// Averaging that would take for ever: something to interrupt. The name of the output tells our processes apart.
class Launch : public testing::Test {
 protected:
  Ended run(const std::string& script) {
    return place_.run("MARK=" + place_.path().filename().string() +
                      "; LONG=\"$GOSSIP --workers 3 --size 1000 --rounds 100000000 --deadline 20 --output "
                      "$MARK{rank}.npy\"\n"
                      "ours() { pgrep -f -- \"--output $MARK\" | grep -v $$; }\n"
                      "workers() { pgrep -P $1 -f -- \"--output $MARK\"; }\n"
                      "gone() { for i in $(seq 100); do [ -z \"$(pgrep -f \"^$GOSSIP.*--output $MARK\")\" ] "
                      "&& echo gone && return; "
                      "sleep 0.1; done; echo left; pgrep -fa -- \"--output $MARK\"; }\n" +
                      script);
  }
  testing_programs::Workplace place_;
};

TEST_F(Launch, EndsAllWorkersOnCtrlC) {
  const Ended e =
      run("$LONG & P=$!; sleep 1.5; workers $P | wc -l; kill -INT $P; wait $P; echo status $?; gone");
  EXPECT_EQ(e.out.substr(0, 2), "3\n") << e.err;
  EXPECT_NE(e.out.find("stopped early"), std::string::npos) << e.out;
  EXPECT_NE(e.out.find("status 130\ngone\n"), std::string::npos) << e.out << e.err;
}

TEST_F(Launch, LeavesNoWorkerWhenItIsKilledItself) {
  const Ended e = run("$LONG & P=$!; sleep 1.5; kill -KILL $P; wait $P; gone");
  EXPECT_EQ(e.out, "gone\n") << e.err;
}

// The others go on averaging; that they end where they must is seen in workers_test.
TEST_F(Launch, NamesAKilledWorkerAndEndsTheOthersWhenTold) {
  const Ended e =
      run("$LONG & P=$!; sleep 1.5; kill -KILL $(workers $P | tail -1); sleep 0.5; kill -INT $P; wait $P; "
          "echo status $?; gone");
  EXPECT_NE(e.out.find("status 130\ngone\n"), std::string::npos) << e.out << e.err;
  EXPECT_NE(e.err.find("worker 2 was killed by signal 9"), std::string::npos) << e.err;
  EXPECT_NE(e.err.find("rank 2"), std::string::npos) << e.err;
}

TEST_F(Launch, TakesRanksFromTheEnvironment) {
  const Ended e =
      run("head -c 32 /dev/urandom > key; chmod 600 key; export SKEIN_KEY_FILE=$PWD/key WORLD_SIZE=3 "
          "MASTER_ADDR=127.0.0.1 "
          "MASTER_PORT=$((20000 + $$ % 20000))\n"
          "for r in 1 2 0; do RANK=$r $GOSSIP --size 10 --rounds 3 & done; wait; gone");
  EXPECT_NE(e.out.find("averaged between 3 workers"), std::string::npos) << e.out << e.err;
}

TEST_F(Launch, NamesAWorkerThatNeverArrives) {
  const Ended e =
      run("head -c 32 /dev/urandom > key; chmod 600 key; export SKEIN_KEY_FILE=$PWD/key WORLD_SIZE=3 "
          "MASTER_ADDR=127.0.0.1 "
          "MASTER_PORT=$((20000 + ($$ + 7777) % 20000))\n"
          "for r in 0 2; do RANK=$r $GOSSIP --size 10 --rounds 3 --deadline 1 || echo failed & done; wait");
  EXPECT_EQ(e.out, "failed\nfailed\n");
  EXPECT_NE(e.err.find("no rank 1 after 1 s"), std::string::npos) << e.err;
}

TEST_F(Launch, SaysWhenThePortIsTaken) {
  const Ended e =
      run("head -c 32 /dev/urandom > key; chmod 600 key; export SKEIN_KEY_FILE=$PWD/key WORLD_SIZE=2 "
          "MASTER_ADDR=127.0.0.1 "
          "MASTER_PORT=$((20000 + ($$ + 3333) % 20000))\n"
          "RANK=0 $GOSSIP --size 10 --rounds 3 --deadline 3 2>/dev/null & sleep 0.7; RANK=0 $GOSSIP --size "
          "10 --rounds 3; wait");
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

TEST_F(Launch, RefusesContradictions) {
  EXPECT_NE(run("RANK=0 $GOSSIP --size 10 --rounds 3").err.find("WORLD_SIZE is not"), std::string::npos);
  EXPECT_NE(run("RANK=2 WORLD_SIZE=2 $GOSSIP --size 10 --rounds 3").err.find("ranks count from 0"),
            std::string::npos);
  EXPECT_NE(run("RANK=0 WORLD_SIZE=2 $GOSSIP --workers 3 --size 10 --rounds 3").err.find("WORLD_SIZE=2"),
            std::string::npos);
}

}  // namespace
}  // namespace skein
