// Worker processes: copies of this program, started before any library wakes and never left behind.
#pragma once

namespace skein::apps {

// Starts `workers` copies of this program with these arguments as ranks 0 .. workers-1 of a job on this host, and stays
// until all have ended. Each finds in its environment RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
// MASTER_PORT, and open descriptors of the job's key (SKEIN_KEY_FD) and, rank 0, of the socket to listen at
// (SKEIN_LISTEN_FD). OMP_NUM_THREADS is each one's share of the cores, unless it is set.
//
// SIGINT, SIGTERM and SIGHUP are passed on once; a second one kills. If this process dies, the kernel kills the
// workers. When a worker fails the others get time to notice and to save, then they are killed too; a worker that is
// stopped does not hold up the end. What several workers write to stderr alike is shown once.
//
// Returns the job's exit status: 0, or that of the lowest rank that failed by itself, or 128 + signal.
// To be called by a process that has no other threads.
// With others_go_on the loss of a killed worker is the others' to deal with: nobody is ended because of it.
int run_processes(int workers, char** argv, bool others_go_on = false);

}  // namespace skein::apps
