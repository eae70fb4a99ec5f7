// Signals of a scheduler: a checkpoint is written, and the job is queued again or ends.
#include "apps/launch/requeue.h"

#include <gtest/gtest.h>

#include "tests/programs/tiny_training.h"

namespace skein {
namespace {

using testing_programs::Ended;
using testing_programs::expect_has;
using testing_programs::Workplace;

const std::string kRun = std::string(kTiny) + "--threads 1 ";

// Trains endlessly in the background; its output is in `log`.
const std::string kLong =
    kRun +
    "--workers 2 --algorithm sgp --steps 100000000 --checkpoint-every 0 --output out --resume auto --requeue "
    "> log 2>&1 & "
    "P=$!; for i in $(seq 600); do grep -qs loss out/metrics.jsonl && break; sleep 0.05; done\n";

TEST(Usr1, StopsAllWorkersWithACheckpointAndPutsTheJobInTheQueueAgain) {
  const Workplace w;
  w.write("scontrol",
          "#!/bin/sh\necho \"$@\" >> asked; grep -c 'SLURM job 77 is put in the queue again' log >> asked\n");
  // The signal may come repeatedly: srun passes on what scancel has already sent to all.
  const Ended e = w.run("chmod +x scontrol; export PATH=$PWD:$PATH SLURM_JOB_ID=77\n" + kLong +
                        "kill -USR1 $P; sleep 0.2; kill -USR1 $P; wait $P; echo status $?; cat asked log");
  expect_has(e.out, "status 130\nrequeue 77\n1\n");
  expect_has(e.out, "interrupted after step ");
  EXPECT_EQ(w.run("ls out/checkpoints | wc -l").out, "1\n");
}

TEST(Usr1, SaysWhyTheJobIsNotInTheQueueAgain) {
  const Workplace w;
  w.write("scontrol", "#!/bin/sh\necho 'slurm_requeue error: Requested operation is disabled' >&2; exit 1\n");
  Ended e = w.run("chmod +x scontrol; export PATH=$PWD:$PATH SLURM_JOB_ID=77\n" + kLong +
                  "kill -USR1 $P; wait $P; echo status $?; cat log");
  expect_has(e.out, "status 130\n");
  expect_has(e.out,
             "could not be put in the queue again: slurm_requeue error: Requested operation is disabled");
}

TEST(Sigterm, EndsTheJobForGood) {
  const Workplace w;
  w.write("scontrol", "#!/bin/sh\necho \"$@\" >> asked\n");
  const Ended e = w.run("chmod +x scontrol; export PATH=$PWD:$PATH SLURM_JOB_ID=77\n" + kLong +
                        "kill -TERM $P; wait $P; echo status $?; cat log");
  expect_has(e.out, "status 130\n");
  expect_has(e.out, "interrupted after step ");
  EXPECT_FALSE(w.has("asked"));
}

}  // namespace
}  // namespace skein
