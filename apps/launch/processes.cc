// Starts workers: sets the environment of each and executes this program again.
#include "apps/launch/processes.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "comm/join/rendezvous.h"

namespace skein::apps {
namespace {

using comm::Fd;

int cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

void set_variable(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
void pass_on(const char* name, const Fd& fd) {
  fcntl(fd.get(), F_SETFD, 0);
  set_variable(name, std::to_string(fd.get()));
}

// Runs in the child.
[[noreturn]] void become(int local_rank, const Crew& c, const Fd& key, char** argv) {
  const int rank = c.first + local_rank;
  set_variable("RANK", std::to_string(rank));
  set_variable("LOCAL_RANK", std::to_string(local_rank));
  set_variable("WORLD_SIZE", std::to_string(c.world));
  set_variable("LOCAL_WORLD_SIZE", std::to_string(c.count));
  set_variable("MASTER_ADDR", c.host);
  set_variable("MASTER_PORT", std::to_string(c.port));
  unsetenv("TORCHELASTIC_USE_AGENT_STORE");  // an agent above us does not use this port
  setenv("OMP_NUM_THREADS", std::to_string(std::max(1, cores() / c.count)).c_str(), 0);
  pass_on("SKEIN_KEY_FD", key);
  if (rank == 0) pass_on("SKEIN_LISTEN_FD", c.listener);
  if (c.orders) {
    const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
    dup2(nothing.get(), STDIN_FILENO);
  }
  execv("/proc/self/exe", argv);
  std::perror("starting a worker: /proc/self/exe");
  _exit(127);
}

}  // namespace

int run_crew(Crew c, char** argv) {
  // Only one crew has the first worker.
  const bool has_first = c.first == 0;
  Supervisor team(c.loss == Loss::kOfFirstEnds && !has_first ? Loss::kIsSurvived : c.loss, c.patience);
  Fd key(memfd_create("job key", MFD_CLOEXEC));
  if (!key || write(key.get(), c.key.data(), c.key.size()) != ssize_t(c.key.size()))
    comm::fail_system("keeping the job key");
  for (int i = 0; i < c.count; ++i)
    team.start("worker " + std::to_string(c.first + i), {},
               [&](size_t number) { become(int(number), c, key, argv); });
  c.listener = {}, key = {};
  if (c.orders) team.obey(std::move(c.orders));
  return team.run();
}

int run_processes(int workers, char** argv, Loss loss, double patience, comm::PortRange ports) {
  Crew c;
  c.count = c.world = workers;
  c.listener = comm::listen_at(c.port, true, ports);
  c.key = comm::random_bytes(comm::kJobKeyBytes);
  c.loss = loss;
  c.patience = patience;
  return run_crew(std::move(c), argv);
}

}  // namespace skein::apps
