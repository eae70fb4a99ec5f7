// Job: who this process is among the workers of a run, and its connection with the others.
#pragma once
#include <functional>
#include <string>

#include "apps/seat.h"
#include "apps/supervisor.h"
#include "comm/communicator.h"

namespace skein::apps {

struct JobOptions {
  int workers = 0;                 // --workers; 0: not said
  std::string transport = "auto";  // auto, local (ranks as threads of this process), shared, ucx
  double deadline = 60;            // seconds for the workers to meet, and for any single wait
  DType wire = kF32;
  bool server = false;         // one process (or thread) more, behind the workers, that only serves
  bool always_peers = false;   // Place::comm also in a world of one
  Loss loss = Loss::kEndsAll;  // of a worker
  std::string interface = "";  // between hosts; empty: the fastest
  bool gpu_messages = false;   // straight from GPU to GPU, where there are GPUs and UCX can
  std::string place = ".";  // directory where ranks meet that know no address or key; shared by their hosts
  std::string hosts;        // --hosts; empty: this one
  bool hosts_said = false;  // on the command line, rather than by the run that is resumed
};

// One worker as its work sees it.
struct Place {
  int rank = 0, world = 1;
  int local_rank = 0, local_world = 1;  // among the workers of this host
  int cores = 0;                        // this worker's own, where its launcher says; else 0
  comm::Communicator* comm = nullptr;   // of the workers; null in a world of one
  comm::Communicator* hub = nullptr;    // of the workers and, last, the server, where there is one
  bool serves = false;    // this is the server: rank and world are the workers' number, comm is null
  std::string ways = "";  // a line a peer: by which way it is reached
  int64_t strangers = 0;  // callers without the job's key that this process refused while the workers met
};

// How many workers there are to be, by the environment (the last rank of which may be the server) or the
// flags. Throws BadOption as seat_from_environment and parse_hosts do.
int planned_workers(const JobOptions&);

// Does `work` as each worker this process is to be, and returns the exit status: as the one worker there is;
// as the rank that the environment says, where something else has started the ranks (docs/launch.md); else
// starts the workers, as processes (this very program again, with the same arguments), here or on --hosts, or
// as threads, and waits for them. `work` returns an exit status and may throw. BadOption: contradictions
// between flags and environment, named.
int run_job(const JobOptions&, char** argv, const std::function<int(Place&)>& work);

}  // namespace skein::apps
