// The launcher: forks, executes itself, passes signals on, and collects what it started.
#include "apps/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "comm/rendezvous.h"

namespace skein::apps {
namespace {

using comm::Clock;
using comm::Fd;

// After a worker has failed the others get so long: a killed one must first be missed, one that ended with an error
// has told its peers.
constexpr auto kGraceAfterKill = std::chrono::seconds(180), kGraceAfterError = std::chrono::seconds(30);
constexpr auto kOneKeystroke = std::chrono::seconds(1);  // timeout(1) signals a process and then its group

struct Child {
  pid_t pid = -1;
  int status = 0;
  bool ended = false, stopped = false;
  Fd errors;         // its stderr
  std::string line;  // of it, as far as it has come
};

int cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

class Launcher {
 public:
  Launcher(int workers, char** argv, bool others_go_on)
      : argv_(argv), others_go_on_(others_go_on), children_(static_cast<size_t>(workers)), parent_(getpid()) {
    sigemptyset(&signals_);
    for (int s : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&signals_, s);
    sigprocmask(SIG_BLOCK, &signals_, &before_);
    // A script's `program &` starts with SIGINT ignored, and an ignored signal is never waited for.
    signal(SIGINT, SIG_DFL), signal(SIGTERM, SIG_DFL);
    listener_ = comm::listen_at(port_, true);
    key_ = Fd(memfd_create("job key", MFD_CLOEXEC));
    const std::string key = comm::random_bytes(comm::kJobKeyBytes);
    if (!key_ || write(key_.get(), key.data(), key.size()) != ssize_t(key.size()))
      comm::fail_system("keeping the job key");
    for (int rank = 0; rank < workers; ++rank) start(rank);
    listener_ = {}, key_ = {};
  }
  ~Launcher() {
    kill_all();
    for (Child& c : children_)
      if (c.pid > 0 && !c.ended) waitpid(c.pid, nullptr, 0);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  Launcher(const Launcher&) = delete;

  int run() {
    while (remaining() > 0) {
      read_errors(100);
      take_signals();
      reap();
      enforce_end();
    }
    read_errors(0);
    return status();
  }

 private:
  void start(int rank) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) comm::fail_system("making a pipe");
    Fd theirs(ends[1]);
    Child& c = children_[size_t(rank)];
    c.errors = Fd(ends[0]);
    comm::set_nonblocking(c.errors);
    std::fflush(nullptr);
    c.pid = fork();
    if (c.pid < 0) comm::fail_system("starting a worker");
    if (c.pid == 0) become(rank, theirs.get());
  }

  // In the child. Its own process group: the terminal's Ctrl-C comes to us, and from us once.
  [[noreturn]] void become(int rank, int errors) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent_) _exit(1);
    dup2(errors, STDERR_FILENO);
    const auto pass = [](const char* name, int fd) {
      fcntl(fd, F_SETFD, 0);
      setenv(name, std::to_string(fd).c_str(), 1);
    };
    const std::string world = std::to_string(children_.size());
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", world.c_str(), 1);
    setenv("LOCAL_WORLD_SIZE", world.c_str(), 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", std::to_string(port_).c_str(), 1);
    setenv("OMP_NUM_THREADS", std::to_string(std::max(1, cores() / int(children_.size()))).c_str(), 0);
    pass("SKEIN_KEY_FD", key_.get());
    if (rank == 0) pass("SKEIN_LISTEN_FD", listener_.get());
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    execv("/proc/self/exe", argv_);
    std::perror("starting a worker: /proc/self/exe");
    _exit(127);
  }

  size_t remaining() const {
    return size_t(std::count_if(children_.begin(), children_.end(), [](const Child& c) { return !c.ended; }));
  }
  void signal_all(int s) {
    for (const Child& c : children_)
      if (c.pid > 0 && !c.ended) kill(c.pid, s);
  }
  void kill_all() { signal_all(SIGKILL); }

  void take_signals() {
    timespec now{0, 0};
    for (int s; (s = sigtimedwait(&signals_, nullptr, &now)) > 0;) {
      if (s == SIGCHLD) continue;
      if (asked_ == Clock::time_point{}) {
        asked_ = Clock::now();
        signal_all(s);
      } else if (Clock::now() - asked_ > kOneKeystroke) {
        kill_all();
      }
    }
  }

  void reap() {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
      const auto c =
          std::find_if(children_.begin(), children_.end(), [&](const Child& x) { return x.pid == pid; });
      if (c == children_.end()) continue;
      c->stopped = WIFSTOPPED(status);
      if (!WIFEXITED(status) && !WIFSIGNALED(status)) continue;
      c->ended = true;
      c->status = status;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
      if (WIFSIGNALED(status) && !ending_ && asked_ == Clock::time_point{})
        std::fprintf(stderr, "worker %d was killed by signal %d (%s)\n", int(c - children_.begin()),
                     WTERMSIG(status), strsignal(WTERMSIG(status)));
      if (WIFSIGNALED(status) && others_go_on_) continue;
      const auto patience =
          WIFSIGNALED(status) ? Clock::duration(kGraceAfterKill) : Clock::duration(kGraceAfterError);
      end_by_ = std::min(end_by_, Clock::now() + patience);
    }
  }

  void enforce_end() {
    if (end_by_ == Clock::time_point::max()) return;
    const bool only_stopped =
        std::all_of(children_.begin(), children_.end(), [](const Child& c) { return c.ended || c.stopped; });
    if (Clock::now() < end_by_ && !only_stopped) return;
    ending_ = true;
    kill_all();
  }

  void read_errors(int patience_ms) {
    std::vector<pollfd> waits;
    for (const Child& c : children_)
      if (c.errors) waits.push_back({c.errors.get(), POLLIN, 0});
    poll(waits.data(), waits.size(), waits.empty() ? std::min(patience_ms, 20) : patience_ms);
    for (Child& c : children_) {
      if (!c.errors) continue;
      char buffer[4096];
      ssize_t n;
      while ((n = read(c.errors.get(), buffer, sizeof buffer)) > 0) c.line.append(buffer, size_t(n));
      if (n == 0) c.errors = {};
      show_lines(c);
    }
  }
  void show_lines(Child& c) {
    if (!c.errors && !c.line.empty() && c.line.back() != '\n') c.line += '\n';
    for (size_t end; (end = c.line.find('\n')) != std::string::npos; c.line.erase(0, end + 1)) {
      const std::string line = c.line.substr(0, end + 1);
      if (shown_.size() > 10000) shown_.clear();
      if (shown_.insert(line).second) std::fputs(line.c_str(), stderr);
    }
  }

  int status() const {
    int signal = 0;
    for (const Child& c : children_) {
      if (WIFEXITED(c.status) && WEXITSTATUS(c.status) != 0) return WEXITSTATUS(c.status);
      if (WIFSIGNALED(c.status) && signal == 0) signal = WTERMSIG(c.status);
    }
    return signal ? 128 + signal : 0;
  }

  char** argv_;
  const bool others_go_on_;
  std::vector<Child> children_;
  const pid_t parent_;
  sigset_t signals_, before_;
  int port_ = 0;
  Fd listener_, key_;
  Clock::time_point asked_{}, end_by_ = Clock::time_point::max();
  bool ending_ = false;
  std::set<std::string> shown_;
};

}  // namespace

int run_processes(int workers, char** argv, bool others_go_on) {
  return Launcher(workers, argv, others_go_on).run();
}

}  // namespace skein::apps
