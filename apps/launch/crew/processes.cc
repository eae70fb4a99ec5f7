// Starts workers: sets the environment of each and executes this program again.
#include "apps/launch/crew/processes.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "apps/launch/crew/superior.h"
#include "apps/launch/crew/supervisor.h"
#include "apps/launch/elastic/role.h"
#include "apps/launch/job_key.h"
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

[[noreturn]] void run_again(char** argv) {
  execv("/proc/self/exe", argv);
  std::perror("starting a worker: /proc/self/exe");
  _exit(127);
}

bool serves(int local_rank, const Crew& c) {
  return c.losses.has_server && c.first + local_rank + 1 == c.world;
}

// What every worker of the crew has in its environment. Runs in the child.
void become_local(int local_rank, const Crew& c, const Fd& key) {
  set_variable("LOCAL_RANK", std::to_string(local_rank));
  set_variable("LOCAL_WORLD_SIZE", std::to_string(c.count));
  unsetenv("TORCHELASTIC_USE_AGENT_STORE");  // an agent above us does not use this port
  setenv("OMP_NUM_THREADS", std::to_string(std::max(1, cores() / c.count)).c_str(), 0);
  pass_on("SKEIN_KEY_FD", key);
  const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (c.orders) dup2(nothing.get(), STDIN_FILENO);
}

[[noreturn]] void become_worker(int local_rank, const Crew& c, const Fd& key, char** argv) {
  const int rank = c.first + local_rank;
  become_local(local_rank, c, key);
  set_variable("RANK", std::to_string(rank));
  set_variable("WORLD_SIZE", std::to_string(c.world));
  set_variable("MASTER_ADDR", c.host);
  set_variable("MASTER_PORT", std::to_string(c.port));
  if (rank == 0) pass_on("SKEIN_LISTEN_FD", c.listener);
  run_again(argv);
}

[[noreturn]] void become_newcomer(int local_rank, const Crew& c, const Fd& key, const std::string& place,
                                  char** argv) {
  become_local(local_rank, c, key);
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_PORT"}) unsetenv(name);
  set_variable("MASTER_ADDR", c.host);  // from which it takes whether others may reach it from outside
  set_variable(kJoinVariable, place);
  if (serves(local_rank, c)) set_variable(kServesVariable, "1");
  run_again(argv);
}

}  // namespace

int run_crew(Crew c, char** argv) {
  // Only one crew has the first worker.
  const bool has_first = c.first == 0, replaces = c.losses.loss == Loss::kIsReplaced;
  Supervisor team(c.losses.loss == Loss::kOfFirstEnds && !has_first ? Loss::kIsSurvived : c.losses.loss,
                  c.losses.patience);
  Fd key(memfd_create("job key", MFD_CLOEXEC));
  if (!key || write(key.get(), c.key.data(), c.key.size()) != ssize_t(c.key.size()))
    comm::fail_system("keeping the job key");
  for (int i = 0; i < c.count; ++i)
    team.start(serves(i, c) ? kServerName : text("worker ", c.first + i),
               {.reports = chooses_members(c.losses.loss)},
               [&](size_t number) { become_worker(int(number), c, key, argv); });
  c.listener = {};
  team.replacements().reported = c.reported;
  if (replaces)
    team.replacements().replace_by(Restarts(c.losses.restarts, {}), [&](size_t number) {
      become_newcomer(int(number), c, key, team.replacements().place(), argv);
    });
  if (c.orders) team.obey(Fd(fcntl(c.orders.get(), F_DUPFD_CLOEXEC, 3)));
  const int status = team.run();
  if (team.replacements().reported && team.replacements().all_left()) team.replacements().reported(kLeaving);
  return status;
}

comm::Secret key_of_new_job(const Losses& losses) {
  if (chooses_members(losses.loss)) set_variable(kRegisterVariable, comm::hex(comm::random_bytes(8)));
  const auto given = losses.loss == Loss::kIsReplaced ? given_job_key() : std::nullopt;
  return given ? *given : comm::Secret::random(comm::kJobKeyBytes);
}

int run_processes(int workers, char** argv, const Losses& losses, comm::PortRange ports) {
  Crew c;
  c.count = c.world = workers;
  c.listener = comm::listen_at(c.port, true, ports);
  c.key = key_of_new_job(losses);
  c.losses = losses;
  return run_crew(std::move(c), argv);
}

}  // namespace skein::apps
