// Worker processes: started, killed, stopped, and never left behind.
#include "apps/launch/launch.h"

#include "tests/support/launched.h"

namespace skein {
namespace {

using Launch = Launched;

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

TEST_F(Launch, StartsWorkersOfItsOwnUnderAnAgent) {
  const Ended e =
      run(kAgent + std::string("unset WORLD_SIZE; $GOSSIP --workers 2 --size 10 --rounds 3; kill $AGENT"));
  EXPECT_NE(e.out.find("averaged between 2 workers"), std::string::npos) << e.out << e.err;
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

}  // namespace
}  // namespace skein
