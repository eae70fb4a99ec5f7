// Workers on several hosts: --hosts, through ssh.
#pragma once
#include <string>
#include <vector>

#include "apps/launch/host_list.h"
#include "apps/launch/supervisor.h"

namespace skein::apps {

struct HostsJob {
  std::vector<HostShare> hosts;  // the first has rank 0
  double deadline = 60;          // seconds for all hosts to answer
  Loss loss = Loss::kEndsAll;    // as in run_processes
};

// Starts this program with these arguments, in this directory, on every host (the same paths must be there),
// and stays until all have ended. The key and the variables OMP_*, SKEIN_*, UCX_* and NCCL_* travel through
// ssh's stdin, never on a command line. Rank 0's host writes to stdout as if it were here, every other line
// has the host's name before it. Signals are passed on as by run_processes; when a connection is lost, the
// workers behind it stop, and the others notice. SKEIN_SSH names another command than ssh; it gets the host
// and a command for a shell.
//
// Returns the job's exit status. Throws BadOption if there is no ssh here, Error if a host cannot be
// reached, lacks the program or the directory, or does not answer, after ending the rest. For a
// process without other threads.
int run_on_hosts(const HostsJob&, char** argv);

// The other end: true in a process that run_on_hosts started on a host, which then is to call the second.
bool is_part_of_hosts();
int run_part_of_hosts(char** argv, Loss, double patience);

}  // namespace skein::apps
