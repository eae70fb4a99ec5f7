// Job: who this process is among the workers of a run, and its connection with the others.
#pragma once
#include <functional>
#include <string>

#include "apps/launch/seat.h"
#include "apps/launch/supervisor.h"
#include "comm/communicator/communicator.h"

namespace skein::apps {

struct JobOptions {
  int workers = 0;                 // --workers; 0: not said
  std::string transport = "auto";  // auto, local (ranks as threads of this process), shared, ucx
  double deadline = 60;            // seconds for the workers to meet, and for any single wait
  DType wire = kF32;
  bool server = false;         // one process (or thread) more, behind the workers, that only serves
  Loss loss = Loss::kEndsAll;  // of a worker
  std::string interface = "";  // between hosts; empty: the fastest
  bool gpu_messages = false;   // straight from GPU to GPU, where there are GPUs and UCX can
  std::string place = ".";  // directory where ranks meet that know no address or key; shared by their hosts
  std::string hosts;        // --hosts; empty: this one
  bool hosts_said = false;  // on the command line, rather than by the run that is resumed
};

// Which of the workers this is.
struct Place {
  int rank = 0, world = 1;
  int local_rank = 0, local_world = 1;  // among the workers of this host
  int cores = 0;                        // this worker's own, where its launcher says; else 0
  std::string ways = "";                // a line a peer: by which way it is reached
  int64_t strangers = 0;  // callers without the job's key that this process refused while the workers met
};

// One worker, or the server, as its work sees it.
struct Member : Place {
  comm::Communicator& comm;  // the workers; of the server itself alone
  comm::Communicator& hub;   // the workers and, last, the server; comm where there is none
  bool has_server() const { return &hub != &comm; }
  bool serves() const { return rank == world; }  // this is the server
};

// How many workers there are to be, by the environment (the last rank of which may be the server) or the
// flags. Throws BadOption as seat_from_environment and parse_hosts do.
int planned_workers(const JobOptions&);

// Does `work` as each worker this process is to be, and returns the exit status: as the one worker there is;
// as the rank that the environment says, where something else has started the ranks (docs/launch.md); else
// starts the workers, as processes (this very program again, with the same arguments), here or on --hosts, or
// as threads, and waits for them. `work` returns an exit status and may throw. BadOption: contradictions
// between flags and environment, named.
int run_job(const JobOptions&, char** argv, const std::function<int(const Member&)>& work);

}  // namespace skein::apps
