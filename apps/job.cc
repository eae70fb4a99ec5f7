// From flags and environment to a communicator.
#include "apps/job.h"

#include <fcntl.h>
#include <omp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <numeric>
#include <optional>
#include <thread>

#include "apps/processes.h"
#include "comm/rendezvous.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;
using comm::Fd;

std::optional<std::string> variable(const char* name) {
  const char* v = std::getenv(name);
  return v && *v ? std::optional<std::string>(v) : std::nullopt;
}
std::optional<int> number(const char* name) {
  const std::optional<std::string> v = variable(name);
  if (!v) return {};
  int n = 0;
  const auto [end, error] = std::from_chars(v->data(), v->data() + v->size(), n);
  if (error != std::errc() || end != v->data() + v->size() || n < 0)
    throw BadOption(text("environment variable ", name, "=", *v, ": a whole number is needed"));
  return n;
}

std::string read_key(int fd, const std::string& from) {
  std::string key(comm::kJobKeyBytes, 0);
  if (pread(fd, key.data(), key.size(), 0) != ssize_t(key.size()))
    throw BadFile(
        text(from, ": a job key has ", key.size(), " bytes; make one with: head -c 32 /dev/urandom > FILE"));
  return key;
}

std::string key_of_file(const std::string& path) {
  const Fd f(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!f) throw BadFile(text(path, ": the job key cannot be read: ", std::strerror(errno)));
  struct stat s {};
  if (fstat(f.get(), &s) != 0 || s.st_uid != geteuid() || (s.st_mode & 077) != 0)
    throw BadFile(path + ": a job key must be yours and readable by you alone; chmod 600 " + path);
  return read_key(f.get(), path);
}

// Workers started by hand on one host, or with one home directory, share a key without being told. Whoever is first
// makes it; a link is made by one only.
std::string key_of_home() {
  const std::optional<std::string> home = variable("HOME");
  if (!home)
    throw BadOption(
        "workers started by RANK and WORLD_SIZE need a job key: set SKEIN_KEY_FILE to a file of 32 random "
        "bytes, the same for all, readable by you alone");
  const fs::path dir = fs::path(*home) / ".config" / "skein", path = dir / "job-key";
  std::error_code none;
  if (!fs::exists(path, none)) {
    fs::create_directories(dir, none);
    const std::string aside = text(path.string(), '.', getpid());
    const std::string key = comm::random_bytes(comm::kJobKeyBytes);
    const Fd f(open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!f || write(f.get(), key.data(), key.size()) != ssize_t(key.size()))
      throw BadFile(text(aside, ": the job key cannot be written: ", std::strerror(errno)));
    [[maybe_unused]] const int made = link(aside.c_str(), path.c_str());
    unlink(aside.c_str());
  }
  return key_of_file(path.string());
}

// One worker of those whose communicator `all` is, or their server.
int work_among(comm::Communicator& all, bool server, Place me, const std::function<int(Place&)>& work) {
  me.comm = &all;
  if (!server) return work(me);
  me.world = all.size() - 1;
  me.hub = &all;
  me.serves = all.rank() == me.world;
  me.comm = nullptr;
  if (me.serves) return work(me);
  std::vector<comm::Rank> workers(static_cast<size_t>(me.world));
  std::iota(workers.begin(), workers.end(), 0);
  const std::unique_ptr<comm::Communicator> group = all.group(workers);
  me.comm = group.get();
  return work(me);
}

int work_as_rank(const JobOptions& o, const Seat& seat, const std::function<int(Place&)>& work) {
  comm::RendezvousOptions r;
  r.rank = seat.rank, r.size = seat.world, r.deadline = o.deadline;
  if (const auto host = variable("MASTER_ADDR"))
    r.host = *host;
  else
    throw BadOption("RANK and WORLD_SIZE are set, MASTER_ADDR is not: where does rank 0 run?");
  if (const auto port = number("MASTER_PORT"))
    r.port = *port;
  else
    throw BadOption("RANK and WORLD_SIZE are set, MASTER_PORT is not: any free port of rank 0's host");
  if (const auto fd = number("SKEIN_LISTEN_FD")) {
    r.listener = Fd(*fd);
    fcntl(*fd, F_SETFD, FD_CLOEXEC);
    unsetenv("SKEIN_LISTEN_FD");
  }
  r.key = job_key();
  const std::string key = r.key;
  comm::Rendezvous meeting(std::move(r));
  comm::TransportOptions t;
  t.way = comm::parse_way(o.transport);
  t.deadline = o.deadline;
  t.interface = o.interface;
  t.silence = std::clamp(o.deadline / 2, 1.0, t.silence);
  if (const auto tls = variable("SKEIN_UCX_TLS")) t.tls = *tls;
  const std::unique_ptr<comm::Transport> transport = comm::connect(meeting, t);
  comm::Communicator communicator(*transport, {.deadline = o.deadline, .wire = o.wire, .key = key});
  const auto strangers = [&] { return meeting.strangers() + transport->strangers(); };
  Place me{.rank = seat.rank,
           .world = seat.world,
           .local_world = seat.local_world,
           .ways = transport->describe(),
           .strangers = strangers()};
  const int status = work_among(communicator, o.server, me, work);
  if (const int64_t n = strangers(); n > 0)
    std::fprintf(
        stderr, "worker %d refused %lld caller%s without this job's key; is another job using its address?\n",
        seat.rank, static_cast<long long>(n), n == 1 ? "" : "s");
  return status;
}

int work_as_threads(const JobOptions& o, const std::function<int(Place&)>& work) {
  auto world = comm::local_world(o.workers + o.server);
  std::vector<std::exception_ptr> failed(world.size());
  std::vector<int> status(world.size(), 0);
  std::vector<std::thread> threads;
  const std::string key = comm::random_bytes(comm::kJobKeyBytes);
  for (size_t r = 0; r < world.size(); ++r)
    threads.emplace_back([&, r] {
      omp_set_num_threads(std::max(1, omp_get_num_procs() / o.workers));
      try {
        comm::Communicator communicator(*world[r], {.deadline = o.deadline, .wire = o.wire, .key = key});
        Place me{.rank = int(r),
                 .world = o.workers,
                 .local_world = o.workers,
                 .ways = r == 0 ? "all ranks: threads of this process\n" : ""};
        status[r] = work_among(communicator, o.server, me, work);
      } catch (...) { failed[r] = std::current_exception(); }
      world[r].reset();  // the others see it leave
    });
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& e : failed)
    if (e) std::rethrow_exception(e);
  for (int s : status)
    if (s != 0) return s;
  return 0;
}

}  // namespace

std::string job_key() {
  if (const auto fd = number("SKEIN_KEY_FD")) {
    fcntl(*fd, F_SETFD, FD_CLOEXEC);
    return read_key(*fd, text("SKEIN_KEY_FD=", *fd));
  }
  if (const auto path = variable("SKEIN_KEY_FILE")) return key_of_file(*path);
  return key_of_home();
}

Seat seat_from_environment() {
  const auto rank = number("RANK"), world = number("WORLD_SIZE"), local = number("LOCAL_WORLD_SIZE");
  if (!rank && !world) return {};
  if (!rank || !world)
    throw BadOption(text(rank ? "RANK" : "WORLD_SIZE", " is set in the environment, ",
                         rank ? "WORLD_SIZE" : "RANK", " is not: set both or neither"));
  if (*world < 1 || *rank >= *world)
    throw BadOption(text("RANK=", *rank, " WORLD_SIZE=", *world, ": ranks count from 0 to WORLD_SIZE - 1"));
  return {true, *rank, *world, std::min(*world, std::max(1, local.value_or(1)))};
}

int run_job(const JobOptions& o, char** argv, const std::function<int(Place&)>& work) {
  const Seat seat = seat_from_environment();
  const bool threads = o.transport == "local";
  if (!threads) comm::parse_way(o.transport);  // refuses what is neither
  const int workers = seat.told ? seat.world - o.server : std::max(1, o.workers);
  if (seat.told && o.workers > 0 && o.workers != workers)
    throw BadOption(text("--workers ", o.workers, ": the environment says WORLD_SIZE=", seat.world,
                         o.server ? ", one of which is the server" : "", "; leave one of them out"));
  if (workers < 1)
    throw BadOption("--servers dedicated: WORLD_SIZE=1 has no room for a worker beside the server");
  if (seat.told && threads && seat.world > 1)
    throw BadOption("--transport local: ranks of RANK and WORLD_SIZE are processes; use auto, shared or ucx");
  if (seat.told && seat.world > 1) return work_as_rank(o, seat, work);
  if (workers == 1 && !o.server && !o.always_peers) {
    Place alone;
    return work(alone);
  }
  JobOptions all = o;
  all.workers = workers;
  if (threads || (workers == 1 && !o.server)) return work_as_threads(all, work);
  return run_processes(workers + o.server, argv, o.others_go_on);
}

}  // namespace skein::apps
