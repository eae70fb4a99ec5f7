// Worker processes: copies of this program, started before any library wakes and never left behind.
#pragma once
#include <string>

#include "apps/launch/supervisor.h"
#include "comm/join/sockets.h"

namespace skein::apps {

// The workers of one host, ranks first .. first + count - 1 of `world`.
struct Crew {
  int first = 0, count = 1, world = 1;
  std::string host = "127.0.0.1";  // where rank 0 listens, as in RendezvousOptions
  int port = 0;
  comm::Fd listener;  // for rank 0, if it is one of them
  std::string key;    // the job's
  comm::Fd orders;    // empty: only signals command; else as Supervisor::obey
  Loss loss = Loss::kEndsAll;
  double patience = 60;  // seconds, as Supervisor's
};

// Starts copies of this program with these arguments, and stays until all have ended. Each finds in its
// environment RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, and open descriptors
// of the job's key (SKEIN_KEY_FD) and, rank 0, of the socket to listen at (SKEIN_LISTEN_FD). OMP_NUM_THREADS
// is each one's share of the cores, unless it is set. Signals, ends and what is said: as Supervisor does it.
//
// Returns the job's exit status: 0, or that of the lowest rank that failed by itself, or 128 + signal.
// To be called by a process that has no other threads.
int run_crew(Crew, char** argv);
// All workers on this host, under a key drawn for them.
int run_processes(int workers, char** argv, Loss = Loss::kEndsAll, double patience = 60);

}  // namespace skein::apps
