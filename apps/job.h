// Job: who this process is among the workers of a run, and its connection with the others.
#pragma once
#include <functional>
#include <string>

#include "comm/communicator.h"

namespace skein::apps {

struct JobOptions {
  int workers = 0;                 // --workers; 0: not said
  std::string transport = "auto";  // auto, local (ranks as threads of this process), shared, ucx
  double deadline = 60;            // seconds for the workers to meet, and for any single wait
  DType wire = kF32;
  bool server = false;         // one process (or thread) more, behind the workers, that only serves
  bool always_peers = false;   // Place::comm also in a world of one
  bool others_go_on = false;   // when a worker is killed the others are not ended
  std::string interface = "";  // between hosts; empty: the fastest
};

// One worker as its work sees it.
struct Place {
  int rank = 0, world = 1;
  int local_world = 1;                 // workers on this host, this one included
  comm::Communicator* comm = nullptr;  // of the workers; null in a world of one
  comm::Communicator* hub = nullptr;   // of the workers and, last, the server, where there is one
  bool serves = false;    // this is the server: rank and world are the workers' number, comm is null
  std::string ways = "";  // a line a peer: by which way it is reached
  int64_t strangers = 0;  // callers without the job's key that this process refused while the workers met
};

// What the environment says: RANK and WORLD_SIZE, and LOCAL_WORLD_SIZE if it is there. BadOption if it makes no sense.
struct Seat {
  bool told = false;
  int rank = 0, world = 1, local_world = 1;
};
Seat seat_from_environment();
// With JobOptions::server the last rank of WORLD_SIZE is the server, and there is a worker less.

// Does `work` as each worker this process is to be, and returns the exit status: as the one worker there is; as rank
// RANK of WORLD_SIZE, where the environment says so, met at MASTER_ADDR:MASTER_PORT; else starts the workers, as
// processes (this very program again, with the same arguments) or as threads, and waits for them. `work` returns an
// exit status and may throw. BadOption: contradictions between flags and environment, named.
int run_job(const JobOptions&, char** argv, const std::function<int(Place&)>& work);

// The job's key: from the descriptor SKEIN_KEY_FD, the file SKEIN_KEY_FILE, or ~/.config/skein/job-key, which is made
// where it is missing. Throws BadFile if others could read the file or it has less than 32 bytes.
std::string job_key();

}  // namespace skein::apps
