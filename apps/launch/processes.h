// Worker processes: copies of this program, started before any library starts threads,
// and never left running.
#pragma once
#include <string>

#include "apps/launch/supervisor.h"
#include "comm/join/sockets.h"

namespace skein::apps {

// The workers of one host, ranks first .. first + count - 1 of `world`.
struct Crew {
  int first = 0, count = 1, world = 1;
  std::string host = "127.0.0.1";  // where rank 0 listens (RendezvousOptions)
  int port = 0;
  comm::Fd listener;  // for rank 0, if it is one of them
  std::string key;    // the job's
  comm::Fd orders;    // see Supervisor::obey(); empty: only signals give orders
  Loss loss = Loss::kEndsAll;
  double patience = 60;  // in seconds, as in Supervisor
};

// Starts copies of this program with these arguments, and waits until all have ended. The environment of
// each has RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and open
// descriptors of the job's key (SKEIN_KEY_FD) and, for rank 0, of the socket to listen at
// (SKEIN_LISTEN_FD). OMP_NUM_THREADS is each one's share of the cores, unless it is set. Supervisor handles
// signals, output and how processes end.
//
// Returns the job's exit status: 0, or that of the lowest rank that failed by itself, or 128 + signal. The
// calling process must have no other threads.
int run_crew(Crew, char** argv);
// Runs all workers on this host, with a random key.
int run_processes(int workers, char** argv, Loss = Loss::kEndsAll, double patience = 60,
                  comm::PortRange = {});

}  // namespace skein::apps
