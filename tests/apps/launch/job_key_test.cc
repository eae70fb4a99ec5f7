// The job's key: in a file of the user's own, or drawn for one job.
#include "apps/launch/job_key.h"

#include "tests/support/launched.h"

namespace skein {
namespace {

using JobKey = Launched;

TEST_F(JobKey, RefusesKeysThatOthersCanRead) {
  const Ended e =
      run("head -c 32 /dev/urandom > key; chmod 644 key\n"
          "SKEIN_KEY_FILE=$PWD/key RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29444 $GOSSIP "
          "--size 10 --rounds 3");
  EXPECT_EQ(e.status, 1);
  EXPECT_NE(e.err.find("chmod 600"), std::string::npos) << e.err;
}

// Workers started by hand have a key of their job alone. A killed job left a note for the same address.
TEST_F(JobKey, IsDrawnForEachJobStartedByHand) {
  const Ended e =
      run("unset SKEIN_KEY_FILE; export HOME=$PWD WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 "
          "MASTER_PORT=$((12000 + ($$ + 5555) % 20000))\n"
          "job() { for r in 1 2; do RANK=$r $GOSSIP --size 10 --rounds 3 & done; sleep 0.3\n"
          "RANK=0 $GOSSIP --size 10 --rounds 3; wait; ls -A .config/skein | wc -l; }\n"
          "job; RANK=0 $GOSSIP --size 10 --rounds 3 & P=$!\n"
          // A name with a dot is the note while it is written.
          "until ls -d .config/skein/job-* 2>/dev/null | grep -x '.config/skein/job-[^.]*'; do kill -0 $P || "
          "break; sleep 0.05; done > note\n"
          "stat -c %a $(cat note); kill -9 $P; wait $P; ls .config/skein | wc -l; job");
  const size_t first = e.out.find("averaged between 3 workers");
  ASSERT_NE(first, std::string::npos) << e.out << e.err;
  EXPECT_NE(e.out.find("averaged between 3 workers", first + 1), std::string::npos) << e.out << e.err;
  EXPECT_NE(e.out.find("\n0\n600\n1\n"), std::string::npos) << e.out << e.err;
  EXPECT_EQ(e.out.substr(e.out.size() - 2), "0\n") << e.out << e.err;
}

}  // namespace
}  // namespace skein
