// Seat: which of the processes that a launcher started this one is, by the launcher's environment variables.
#pragma once
#include <string>
#include <vector>

namespace skein::apps {

// The variables are in docs/launch.md. The launcher closest to the process counts: RANK and WORLD_SIZE, then
// what mpirun and mpiexec set, then srun.
struct Seat {
  enum By : uint8_t { kNobody, kVariables, kOpenMpi, kPmi, kSlurm } by = kNobody;
  bool told = false;  // there are other processes, or RANK and WORLD_SIZE say that there are none
  int rank = 0, world = 1;
  int local_rank = 0, local_world = 1;  // among the processes of this host
  int cores = 0;                        // cores reserved for this process; 0: unknown
  std::string said;                     // where the world's size comes from: "WORLD_SIZE=4"
  std::string job;                      // identifies this start of this job; usable in a file name
  std::string node;                     // this host's name for the others
  // SLURM: the step's first host, where task 0 runs unless the distribution is arbitrary.
  std::string first_host;
  int port = 0;            // SLURM: derived from the job's number; else 0
  std::vector<int> ports;  // torchrun: ports for rank 0, because the agent itself listens at MASTER_PORT
};

// Throws BadOption if variables are missing or contradict each other. A single task, such as a shell under
// srun, has told == false, so it may start workers itself.
Seat seat_from_environment();

}  // namespace skein::apps
