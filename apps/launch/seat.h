// Seat: who this process is among those that something else started, by the variables it
// left in the environment.
#pragma once
#include <string>
#include <vector>

namespace skein::apps {

// The variables are in docs/launch.md. Who is nearest to the process counts: RANK and WORLD_SIZE, then what
// mpirun and mpiexec set, then srun.
struct Seat {
  enum By : uint8_t { kNobody, kVariables, kOpenMpi, kPmi, kSlurm } by = kNobody;
  bool told = false;  // there are others, or RANK and WORLD_SIZE say that there are none
  int rank = 0, world = 1;
  int local_rank = 0, local_world = 1;  // among those of this host
  int cores = 0;                        // that are this process's own; 0: nobody says
  std::string said;                     // what the world's size comes from: "WORLD_SIZE=4"
  std::string job;                      // tells this start of this job from others, fit for a file name
  std::string node;                     // this host, as others know it
  std::string first_host;  // SLURM: of the step; task 0 runs there unless its distribution is arbitrary
  int port = 0;            // SLURM: one that follows from the job's number; else 0
  std::vector<int> ports;  // torchrun, whose agent listens at MASTER_PORT itself: others for rank 0
};

// Throws BadOption, with one message, where variables are missing or contradict each other. A task that is
// alone, such as a shell under srun, is not told: it may start workers of its own.
Seat seat_from_environment();

}  // namespace skein::apps
