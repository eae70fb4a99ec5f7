// Runs scontrol.
#include "apps/launch/requeue.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "apps/base/environment.h"
#include "apps/launch/interrupt.h"
#include "comm/join/sockets.h"

extern char** environ;

namespace skein::apps {
namespace {

// Runs a program and returns its exit status; `said` receives its stdout and stderr. Throws Error if
// it cannot be started.
int run_program(std::vector<std::string> words, std::string& said) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) comm::fail_system("making a pipe");
  const comm::Fd ours(ends[0]);
  comm::Fd theirs(ends[1]);
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDERR_FILENO);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw Error(words[0] + ": " + std::strerror(error));
  theirs = {};
  char buffer[512];
  for (ssize_t n; (n = read(ours.get(), buffer, sizeof buffer)) > 0;) said.append(buffer, size_t(n));
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

void requeue_job() {
  const auto job = variable("SLURM_JOB_ID");
  if (!job) return say(stdout, "--requeue: this is not a SLURM job, so it cannot be requeued\n");
  say(stdout, text("SLURM job ", *job, " is put in the queue again\n"));
  std::string said;
  try {
    if (run_program({"scontrol", "requeue", *job}, said) == 0) return;
  } catch (const Error& e) { said = e.what(); }
  while (!said.empty() && said.back() == '\n') said.pop_back();
  say(stdout, text("SLURM job ", *job, " could not be put in the queue again: ", said, '\n'));
}

}  // namespace skein::apps
