// Job: which worker of a run this process is, and its connection to the others.
#pragma once
#include <functional>
#include <string>

#include "apps/launch/crew/losses.h"
#include "apps/launch/seat.h"
#include "comm/communicator/communicator.h"

namespace skein::comm {
class Council;
}

namespace skein::apps {

struct Simulated;

// What `work` returns when the membership changes: it is called again, as a member of the next epoch.
inline constexpr int kNextEpoch = -1;

// Large class: a member a flag or a fact about the job, all with values that suit a job of one worker.
struct JobOptions {
  int workers = 0;                 // --workers; 0: not given
  std::string transport = "auto";  // auto, local (ranks as threads of this process), shared, tcp, ucx
  std::string seal = "auto";       // what is encrypted between hosts: auto, on, off
  comm::PortRange ports = {};      // where processes may listen
  double deadline = 60;            // seconds for the workers to meet, and for any single wait
  DType wire = kF32;
  bool server = false;                   // one more process (or thread), after the workers, that only serves
  Loss loss = Loss::kEndsAll;            // what happens when a worker is lost
  std::string identity = "";             // what all workers of a job must agree about, in words
  std::string description = "";          // the job's configuration, for newcomers who ask
  bool elastic = false;                  // workers may die, leave and join; those started here are replaced
  int min_workers = 1, max_workers = 0;  // of an elastic job; max_workers 0: no bound
  int restarts = 3;                      // fresh workers that take a dead one's place, one after the other
  std::string join = "";                 // --join: HOST:PORT or directory of the job to enter; empty: none
  std::string interface = "";            // used between hosts; empty: the fastest
  bool gpu_messages = false;             // send from GPU to GPU directly, if there are GPUs and UCX can
  std::string place = ".";               // shared directory where ranks that know no address or key meet
  std::string hosts;                     // --hosts; empty: this host
  bool hosts_said = false;               // given on the command line, not taken from the resumed run

  // Whether workers go on without those that are lost or leave, and nobody joins them.
  bool regroups() const { return !elastic && loss == Loss::kIsSurvived; }
};

// Identifies a worker among the others.
struct Place {
  int rank = 0, world = 1;
  int local_rank = 0, local_world = 1;  // among the workers of this host
  int cores = 0;                        // reserved for this worker by its launcher; 0 if unknown
  bool has_server = false;              // one more process only serves the workers
  std::string ways = "";                // one line per peer: the transport that reaches it
  Simulated* simulated = nullptr;       // the world in which it lives; null: in this one
  comm::Council* council = nullptr;     // chooses the members of the next epoch; null: there is only one
  // With JobOptions::regroups(): closes the communicators of past epochs, which live until then.
  std::function<void()> close_past = {};
  // With a council: what is called before this process disconnects for good, because of an error, too.
  std::function<void(std::function<void()>)> before_end = {};
  // With a council: tells newcomers and the launcher that this run is found in this directory. Called
  // by every worker.
  std::function<void(const std::string& directory)> announce = {};
  const comm::Refusals* refusals =
      nullptr;  // of this process, counted while it works; null: it has no network
};

// A worker, or the server, as passed to `work` of run_job().
struct Member : Place {
  comm::Communicator& comm;  // the workers; on the server, itself alone
  comm::Communicator& hub;   // the workers and, last, the server; the same as comm if there is no server
  bool serves() const { return rank == world; }  // this is the server
};

// How many workers there will be, by the environment (whose last rank may be the server) or the flags. Throws
// BadOption as seat_from_environment() and parse_hosts() do.
int planned_workers(const JobOptions&);

// Calls `work` for each worker that this process is, and returns the exit status. If a launcher has started
// the ranks, this process is the rank that the environment says (docs/launch.md). Otherwise it starts the
// workers and waits for them: as processes (this program with the same arguments), here or on --hosts, or as
// threads; a single worker runs in this process. `work` returns an exit status and may throw. Throws
// BadOption if flags and environment contradict each other.
int run_job(const JobOptions&, char** argv, const std::function<int(const Member&)>& work);

// Calls `work` as this worker of the communicator `all`, or as their server, which is one of them; negative:
// there is none.
int work_among(comm::Communicator& all, comm::Rank server, Place me,
               const std::function<int(const Member&)>& work);

// Runs a program and returns its exit status. What it throws is printed as one line that begins
// with its name; so is that stdout had no room for its last words.
int status_of(const std::string& program, const std::function<int()>& run);

}  // namespace skein::apps
