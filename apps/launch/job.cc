// Makes a communicator from flags and environment.
#include "apps/launch/job.h"

#include <omp.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>

#include "apps/base/environment.h"
#include "apps/base/printable.h"
#include "apps/launch/crew/hosts.h"
#include "apps/launch/crew/processes.h"
#include "apps/launch/epochs.h"
#include "apps/launch/interrupt.h"
#include "comm/communicator/run_workers.h"
#include "comm/communicator/world_of_one.h"

namespace skein::apps {
namespace {

using Work = std::function<int(const Member&)>;

// Says once what this process has refused, however its work ends.
class Refusing {
 public:
  explicit Refusing(const Epochs& epochs) : epochs_(epochs) {}
  Refusing(const Refusing&) = delete;
  ~Refusing() {
    const Place me = epochs_.place();
    if (const std::string refused = me.refusals->counts().words(); !refused.empty())
      std::fprintf(stderr,
                   "worker %d refused %s; is another job using its address, or is this job under attack?\n",
                   me.rank, refused.c_str());
  }

 private:
  const Epochs& epochs_;
};

int work_as_rank(const JobOptions& o, const Seat& seat, const Work& work) {
  Epochs epochs(o, seat);
  const Refusing refusing(epochs);
  for (;; epochs.advance()) {
    const int status = work_among(epochs.communicator(), epochs.server(), epochs.place(), work);
    if (status != kNextEpoch) return epochs.end(), status;
  }
}

Losses losses_of(const JobOptions& o) {
  return {o.elastic ? Loss::kIsReplaced : o.loss, patience_of_launcher(o.deadline), o.restarts, o.server};
}

constexpr const char* kThreads = "all ranks: threads of this process\n";

int work_alone(const JobOptions& o, const Work& work) {
  comm::WorldOfOne world(
      {.deadline = o.deadline, .wire = o.wire, .key = comm::Secret::random(comm::kJobKeyBytes)});
  return work({Place{.ways = kThreads}, world, world});
}

int work_as_threads(const JobOptions& o, const Work& work) {
  std::vector<int> status(size_t(o.workers + o.server), 0);
  const auto one = [&](comm::Communicator& all) {
    omp_set_num_threads(std::max(1, omp_get_num_procs() / o.workers));
    const int r = all.rank();
    Place me{.rank = r,
             .world = o.workers,
             .local_rank = r,
             .local_world = o.workers,
             .ways = r == 0 ? kThreads : ""};
    status[size_t(r)] = work_among(all, o.server ? o.workers : -1, me, work);
  };
  comm::run_workers(o.workers + o.server, one, {.deadline = o.deadline, .wire = o.wire});
  const auto failed = std::find_if(status.begin(), status.end(), [](int s) { return s != 0; });
  return failed == status.end() ? 0 : *failed;
}

}  // namespace

int work_among(comm::Communicator& all, comm::Rank server, Place me, const Work& work) {
  if (server < 0) return work({me, all, all});
  std::vector<comm::Rank> workers;
  for (comm::Rank r = 0; r < all.size(); ++r)
    if (r != server) workers.push_back(r);
  me.world = int(workers.size()), me.has_server = true;
  me.rank = all.rank() == server ? me.world : all.rank() - (server < all.rank());
  const auto group = all.group(all.rank() == server ? std::vector<comm::Rank>{server} : workers);
  if (server + 1 == all.size()) return work({me, *group, all});
  workers.push_back(server);
  const auto hub = all.group(workers);
  return work({me, *group, *hub});
}

int planned_workers(const JobOptions& o) {
  const Seat seat = seat_from_environment();
  if (seat.told) return seat.world - o.server;
  if (o.hosts.empty()) return std::max(1, o.workers);
  int sum = 0;
  for (const HostShare& h : parse_hosts(o.hosts, o.workers)) sum += h.workers;
  return sum;
}

int run_job(const JobOptions& o, char** argv, const Work& work) {
  if (is_part_of_hosts()) return run_part_of_hosts(argv, losses_of(o), o.ports);
  comm::parse_sealing(o.seal);
  const Seat seat = seat_from_environment();
  const bool threads = comm::parse_way(o.transport) == comm::Way::kLocal;
  const int workers = planned_workers(o);
  if (seat.told && o.workers > 0 && o.workers != workers)
    throw BadOption(text("--workers ", o.workers, ": the environment says ", seat.said,
                         o.server ? ", one of which is the server" : "", "; leave one of them out"));
  if (workers < 1)
    throw BadOption(text("--servers dedicated: ", seat.said, " has no room for a worker beside the server"));
  if (seat.told && threads && seat.world > 1)
    throw BadOption(
        text("--transport local: those of ", seat.said, " are processes; use auto, shared, tcp or ucx"));
  // What our own launcher starts has the same words, and a key.
  if (seat.told && o.hosts_said && !variable("SKEIN_KEY_FD"))
    throw BadOption(text("--hosts ", o.hosts, ": the environment says ", seat.said,
                         ", so the workers are started already; leave --hosts out"));
  if (!o.join.empty() || (seat.told && seat.world > 1)) return work_as_rank(o, seat, work);
  if (!seat.told && !o.hosts.empty()) {
    if (threads) throw BadOption("--transport local: workers on --hosts are processes; use auto, tcp or ucx");
    HostsJob job{parse_hosts(o.hosts, o.workers), o.deadline, losses_of(o)};
    job.hosts.back().workers += o.server;
    return run_on_hosts(job, argv);
  }
  if (workers == 1 && !o.server) return work_alone(o, work);
  JobOptions all = o;
  all.workers = workers;
  if (threads) return work_as_threads(all, work);
  return run_processes(workers + o.server, argv, losses_of(o), o.ports);
}

int status_of(const std::string& program, const std::function<int()>& run) {
  // Exceeding a file-size limit then looks like a full disk: an error that names the file.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int status = run();
    if (status == 0 && std::fflush(stdout) != 0 && errno != EPIPE)
      throw Error(text("stdout: cannot write: ", std::strerror(errno)));
    return status;
  } catch (const comm::RunEnded& e) {
    say(stdout, text(e.what(), '\n'));
    return e.end.interrupted ? kExitInterrupted : 0;
  } catch (const std::exception& e) {
    say(stderr, text(program, ": ", printable(e.what()), '\n'));
    if (dynamic_cast<const BadOption*>(&e)) return kExitUsage;
    return dynamic_cast<const comm::GivenUp*>(&e) ? kExitGivenUp : kExitRuntime;
  }
}

}  // namespace skein::apps
