// How the workers of a launcher find each other: by a note, beside an agent, and what is said when
// they do not.
#include "apps/launch/meeting.h"

#include "tests/support/launched.h"

namespace skein {
namespace {

using Meeting = Launched;

// Nothing says where rank 0 is, and there is a note of a killed job.
TEST_F(Meeting, MeetsByANoteUnderMpi) {
  const Ended e =
      run("printf \"skein meeting 1\\nhosts 127.0.0.1\\nport 9\\nkey $(printf %064d 7)\\n\" > "
          ".skein-meeting-mpi\n"
          "chmod 600 .skein-meeting-mpi; export OMPI_COMM_WORLD_SIZE=3\n"
          "for r in 1 2; do OMPI_COMM_WORLD_RANK=$r $GOSSIP --size 10 --rounds 3 & done; sleep 0.3\n"
          "OMPI_COMM_WORLD_RANK=0 $GOSSIP --size 10 --rounds 3; wait; ls -A | grep -c meeting");
  EXPECT_NE(e.out.find("averaged between 3 workers"), std::string::npos) << e.out << e.err;
  EXPECT_EQ(e.out.substr(e.out.size() - 2), "0\n") << e.out;
}

TEST_F(Meeting, TrainsUnderMpiWithTheNoteInTheRunsDirectory) {
  const Ended e =
      run("export PMI_SIZE=2\nfor r in 0 1; do PMI_RANK=$r $TRAIN --data "
          "synthetic:8x8x1,classes=3,train=64,test=30 "
          "--model mlp --algorithm sgp --batch-size 8 --steps 4 --threads 1 --output runs/one || echo failed "
          "& done; "
          "wait; ls -A runs/one | grep -c meeting");
  EXPECT_NE(e.out.find("2 workers by sgp"), std::string::npos) << e.out << e.err;
  EXPECT_EQ(e.out.substr(e.out.size() - 2), "0\n") << e.out;
}

TEST_F(Meeting, SaysWhereItWaitedForANoteThatNeverCame) {
  const Ended e = run("PMI_RANK=1 PMI_SIZE=2 $GOSSIP --size 10 --rounds 3 --deadline 0.5");
  EXPECT_EQ(e.status, 1);
  EXPECT_NE(
      e.err.find("/.skein-meeting-mpi: was rank 0 started, and is that directory the same on all hosts?"),
      std::string::npos)
      << e.err;
}

TEST_F(Meeting, RefusesANoteThatOthersCanRead) {
  const Ended e =
      run("touch .skein-meeting-mpi; PMI_RANK=1 PMI_SIZE=2 $GOSSIP --size 10 --rounds 3 --deadline 1");
  EXPECT_NE(e.err.find("chmod 600"), std::string::npos) << e.err;
}

// Where the workers' output goes has nothing to do with it.
TEST_F(Meeting, SaysWhatDoesWithoutAHomeThatCanBeWritten) {
  const Ended e =
      run("export HOME=/proc/none RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "
          "MASTER_PORT=$((12000 + ($$ + 6666) % 20000))\n$GOSSIP --size 10 --rounds 3");
  EXPECT_EQ(e.status, 1);
  EXPECT_NE(e.err.find("cannot be written: No such file or directory; set SKEIN_KEY_FILE to"),
            std::string::npos)
      << e.err;
}

TEST_F(Meeting, NamesAWorkerThatNeverArrives) {
  const Ended e =
      run("head -c 32 /dev/urandom > key; chmod 600 key; export SKEIN_KEY_FILE=$PWD/key WORLD_SIZE=3 "
          "MASTER_ADDR=127.0.0.1 "
          "MASTER_PORT=$((12000 + ($$ + 7777) % 20000))\n"
          "for r in 0 2; do RANK=$r $GOSSIP --size 10 --rounds 3 --deadline 4 || echo failed & done; wait");
  EXPECT_EQ(e.out, "failed\nfailed\n");
  EXPECT_NE(e.err.find("no rank 1 after 4 s"), std::string::npos) << e.err;
}

TEST_F(Meeting, MeetsBesideTorchrunsAgent) {
  const Ended e =
      run(kAgent + std::string("for r in 1 2 0; do RANK=$r $GOSSIP --size 10 --rounds 3 & P=\"$P $!\"; done\n"
                               "wait $P; kill $AGENT"));
  EXPECT_NE(e.out.find("averaged between 3 workers"), std::string::npos) << e.out << e.err;
  EXPECT_EQ(e.err, "");
}

// Workers of an abandoned start do not meet those of the next one, although key and address are the same.
TEST_F(Meeting, TellsTheStartsOfATorchrunJobApart) {
  const Ended e = run(
      kAgent + std::string("RANK=0 $GOSSIP --size 10 --rounds 3 --deadline 100 & OLD=$!\n"
                           "for r in 0 1 2; do TORCHELASTIC_RESTART_COUNT=1 RANK=$r $GOSSIP --size 10 "
                           "--rounds 3 & P=\"$P $!\"; done\n"
                           "wait $P; echo met; kill -0 $OLD && echo still alone; kill $OLD $AGENT; wait"));
  EXPECT_NE(e.out.find("averaged between 3 workers"), std::string::npos) << e.out << e.err;
  EXPECT_NE(e.out.find("met\nstill alone\n"), std::string::npos) << e.out << e.err;
}

TEST_F(Meeting, SaysWhenThePortIsTaken) {
  const Ended e = run(
      "head -c 32 /dev/urandom > key; chmod 600 key; export SKEIN_KEY_FILE=$PWD/key WORLD_SIZE=2 "
      "MASTER_ADDR=127.0.0.1 "
      "MASTER_PORT=$((12000 + ($$ + 3333) % 20000))\n"
      "RANK=0 $GOSSIP --size 10 --rounds 3 --deadline 30 2>/dev/null & P=$!\n"
      "until (: < /dev/tcp/127.0.0.1/$MASTER_PORT) 2>/dev/null; do kill -0 $P || break; sleep 0.05; done\n"
      "RANK=0 $GOSSIP --size 10 --rounds 3; kill $P; wait");
  EXPECT_NE(e.err.find("is in use on this host"), std::string::npos) << e.err;
}

}  // namespace
}  // namespace skein
