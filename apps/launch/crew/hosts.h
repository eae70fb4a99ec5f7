// Workers on several hosts: --hosts, through ssh.
#pragma once
#include <string>
#include <vector>

#include "apps/launch/crew/losses.h"
#include "apps/launch/host_list.h"

namespace skein::apps {

struct HostsJob {
  std::vector<HostShare> hosts;  // the first has rank 0
  double deadline = 60;          // seconds for all hosts to answer
  Losses losses = {};            // as in run_processes, on each host
};

// Starts this program with these arguments, in this directory, on every host (the same paths must be there),
// and waits until all have ended. The key and the variables OMP_*, SKEIN_*, UCX_* and NCCL_* travel through
// ssh's stdin, never on a command line. The stdout of rank 0's host is passed on unchanged; every other line
// gets the host's name in front. Signals are passed on as by run_processes. When a connection is lost, the
// workers behind it stop, and the others notice. SKEIN_SSH names a command to use instead of ssh; its
// arguments are the host and a shell command.
//
// Returns the job's exit status. Throws BadOption if there is no ssh here. Throws Error, after ending the
// rest, if a host cannot be reached, lacks the program or the directory, or does not answer. The process must
// have no other threads.
int run_on_hosts(const HostsJob&, char** argv);

// The other end: true in a process that run_on_hosts() started on a host, which
// must then call run_part_of_hosts().
bool is_part_of_hosts();
int run_part_of_hosts(char** argv, const Losses&, comm::PortRange);

}  // namespace skein::apps
