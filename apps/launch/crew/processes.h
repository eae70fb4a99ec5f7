// Worker processes: copies of this program, started before any library starts threads,
// and never left running.
#pragma once
#include <string>

#include "apps/launch/crew/losses.h"
#include "comm/join/sockets.h"
#include "comm/secret.h"

namespace skein::apps {

// The workers of one host, ranks first .. first + count - 1 of `world`.
struct Crew {
  int first = 0, count = 1, world = 1;
  std::string host = "127.0.0.1";  // where rank 0 listens (RendezvousOptions)
  int port = 0;
  comm::Fd listener;  // for rank 0, if it is one of them
  comm::Secret key;   // the job's
  comm::Fd orders;    // see Supervisor::obey(); empty: only signals give orders
  Losses losses = {};
  std::function<void(const std::string&)> reported = {};  // as in Supervisor
};

// Starts copies of this program with these arguments, and waits until all have ended. The environment of each
// has RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and open descriptors of
// the job's key (SKEIN_KEY_FD) and, for rank 0, of the socket to listen at (SKEIN_LISTEN_FD). A fresh worker,
// which takes the place of a lost one, has SKEIN_JOIN instead of rank, world and address: where the job is
// found (superior.h). OMP_NUM_THREADS is each one's share of the cores, unless it is set. Supervisor handles
// signals, output and how processes end.
//
// Returns the job's exit status: 0, or that of the lowest rank that failed by itself, or 128 + signal. The
// calling process must have no other threads.
int run_crew(Crew, char** argv);
// Runs all workers on this host, with key_of_new_job().
int run_processes(int workers, char** argv, const Losses& = {}, comm::PortRange = {});
// The key of a job that is started here: random; where strangers to the launcher may join it, that of
// SKEIN_KEY_FILE, if there is one.
comm::Secret key_of_new_job(const Losses&);

}  // namespace skein::apps
