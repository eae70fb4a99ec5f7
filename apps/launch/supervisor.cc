// Supervisor: fork, poll, waitpid, and timeouts.
#include "apps/launch/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "apps/base/host.h"

namespace skein::apps {
namespace {

using comm::Clock;
using comm::Fd;

// How long the others get after a ward has failed: they must first miss a killed worker, while one that ended
// with an error has told its peers.
constexpr auto kGraceAfterKill = std::chrono::seconds(180), kGraceAfterError = std::chrono::seconds(30);
constexpr auto kOneKeystroke = std::chrono::seconds(1);  // timeout(1) signals a process and then its group
constexpr auto kLastOrder = std::chrono::seconds(2);     // for a ward that is ordered to kill its workers
// After SIGKILL, in case the process hangs in the kernel.
constexpr auto kUnkillable = std::chrono::seconds(10);

std::pair<Fd, Fd> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) comm::fail_system("making a pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

// Whether the process is stopped, traced, or in uninterruptible sleep.
bool stands_still(const Ward& w) {
  const std::string state = process_state(w.pid);
  return !state.empty() && std::strchr("TtD", state[0]) != nullptr;
}

// Whether the ward, a worker behind it, or the connection to them is lost.
bool is_lost(const Ward& w) {
  return (w.exit_code() > 128 && w.exit_code() != kExitInterrupted) || w.exit_code() == kExitGivenUp;
}

}  // namespace

int Ward::exit_code() const { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

Supervisor::Supervisor(Loss loss, double patience)
    : loss_(loss),
      patience_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience))),
      parent_(getpid()) {
  sigemptyset(&signals_);
  for (int s : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGTSTP, SIGCHLD}) sigaddset(&signals_, s);
  sigprocmask(SIG_BLOCK, &signals_, &before_);
  // A script's `program &` starts with SIGINT ignored, and an ignored signal cannot be waited for.
  signal(SIGINT, SIG_DFL), signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);  // waitpid reports a ward that is gone
}

Supervisor::~Supervisor() {
  for (Ward& w : wards_)
    if (w.pid > 0 && !w.ended) kill(w.pid, SIGKILL), waitpid(w.pid, nullptr, 0);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Ward& Supervisor::start(const std::string& name, const Pipes& pipes,
                        const std::function<void(size_t number)>& become) {
  const size_t number = wards_.size();
  auto [errors, errors_of_child] = make_pipe();
  Fd output, output_of_child, orders, orders_of_child;
  if (pipes.output) std::tie(output, output_of_child) = make_pipe();
  if (pipes.orders) std::tie(orders_of_child, orders) = make_pipe();
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) comm::fail_system("starting " + name);
  if (pid == 0) {
    // Its own process group, so that the terminal's Ctrl-C reaches only us and we pass it on once.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent_) _exit(1);
    dup2(errors_of_child.get(), STDERR_FILENO);
    if (output_of_child) dup2(output_of_child.get(), STDOUT_FILENO);
    if (orders_of_child) dup2(orders_of_child.get(), STDIN_FILENO);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    become(number);
    _exit(127);
  }
  Ward w;
  w.name = name;
  w.pid = pid;
  w.errors = std::move(errors), w.output = std::move(output), w.orders = std::move(orders);
  for (const Fd* f : {&w.errors, &w.output, &w.orders})
    if (*f) comm::set_nonblocking(*f);
  wards_.push_back(std::move(w));
  return wards_.back();
}

void Supervisor::obey(Fd orders) {
  comm::set_nonblocking(orders);
  superior_ = std::move(orders);
}

int Supervisor::run() {
  while (remaining() > 0) {
    listen(100);
    take_signals();
    take_orders();
    reap();
    if (tick && !ending_ && !tick()) kill_all();
    enforce_end();
  }
  listen(0);
  return status();
}

size_t Supervisor::remaining() const {
  return size_t(std::count_if(wards_.begin(), wards_.end(), [](const Ward& w) { return !w.ended; }));
}

// Lines are short and the pipe is nearly empty; a full pipe belongs to a dead connection.
void Supervisor::send_line(Ward& w, const std::string& line) {
  const std::string all = line + '\n';
  if (w.orders && write(w.orders.get(), all.data(), all.size()) != ssize_t(all.size())) w.orders = {};
}

void Supervisor::signal_all(int s) {
  for (Ward& w : wards_) {
    if (w.pid <= 0 || w.ended) continue;
    if (w.orders)
      send_line(w, "signal " + std::to_string(s));
    else
      kill(w.pid, s);
  }
}

// A ward that takes orders kills its own workers first, and does so, too, when it loses us.
void Supervisor::kill_all() {
  if (!ending_) killed_ = Clock::now();
  ending_ = true;
  for (Ward& w : wards_) {
    if (w.pid <= 0 || w.ended) continue;
    if (w.orders) {
      send_line(w, "signal " + std::to_string(SIGKILL));
      w.orders = {};
      w.condemned = Clock::now();
    } else if (Clock::now() - w.condemned > kLastOrder) {
      kill(w.pid, SIGKILL);
    }
  }
}

void Supervisor::take_signals() {
  timespec now{0, 0};
  for (int s; (s = sigtimedwait(&signals_, nullptr, &now)) > 0;)
    if (s != SIGCHLD) ask(s);
}

void Supervisor::ask(int s) {
  if (s == SIGKILL) {
    kill_all();
  } else if (s == SIGTSTP && !superior_) {
    hold();
  } else if (s == SIGUSR1 || s == SIGTSTP || s == SIGCONT) {
    signal_all(s);
  } else if (asked_ == Clock::time_point{}) {
    asked_ = Clock::now();
    signal_all(s);
  } else if (s != SIGHUP && Clock::now() - asked_ > kOneKeystroke) {
    kill_all();
  }
}

// Wards are in their own process groups, which the terminal's Ctrl-Z does not reach. Those that take orders
// keep running to receive the next one; they stop and continue only their own workers.
void Supervisor::hold() {
  const auto began = Clock::now();
  signal_all(SIGTSTP);
  raise(SIGSTOP);
  signal_all(SIGCONT);
  const auto held = Clock::now() - began;
  if (asked()) asked_ += held;
  if (end_by_ != Clock::time_point::max()) end_by_ += held;
  if (through_) *through_ += held;
  killed_ += held;
}

void Supervisor::take_orders() {
  if (!superior_) return;
  char buffer[512];
  ssize_t n;
  while ((n = read(superior_.get(), buffer, sizeof buffer)) > 0) superior_line_.append(buffer, size_t(n));
  for (size_t end; (end = superior_line_.find('\n')) != std::string::npos; superior_line_.erase(0, end + 1)) {
    int s = 0;
    if (std::sscanf(superior_line_.c_str(), "signal %d", &s) == 1 && s > 0 && s < NSIG) ask(s);
  }
  if (n != 0) return;
  superior_ = {};
  std::fprintf(stderr, "the program that started these workers is gone; they stop\n");
  if (!asked()) ask(SIGINT);
  end_by_ = std::min(end_by_, Clock::now() + Clock::duration(kGraceAfterError));
}

void Supervisor::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
    const auto w = std::find_if(wards_.begin(), wards_.end(), [&](const Ward& x) { return x.pid == pid; });
    if (w == wards_.end()) continue;
    w->stopped = WIFSTOPPED(status);
    if (!WIFEXITED(status) && !WIFSIGNALED(status)) continue;
    w->ended = true;
    w->status = status;
    w->orders = {};
    if (status == 0) continue;
    if (WIFSIGNALED(status) && !ending_ && !asked())
      std::fprintf(stderr, "%s was killed by signal %d (%s)\n", w->name.c_str(), WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
    if (loss_ == Loss::kIsSurvived || (loss_ == Loss::kOfFirstEnds && w != wards_.begin())) continue;
    const auto patience = is_lost(*w) ? Clock::duration(kGraceAfterKill) : Clock::duration(kGraceAfterError);
    end_by_ = std::min(end_by_, Clock::now() + patience);
  }
}

// Whether the wards that are left do nothing for the job any more. If workers may leave before the others
// have finished, that is certain only of wards that stand still.
bool Supervisor::others_are_through() const {
  if (loss_ == Loss::kEndsAll || remaining() == 0 || remaining() == wards_.size()) return false;
  if (loss_ == Loss::kOfFirstEnds) return wards_[0].ended;
  return std::all_of(wards_.begin(), wards_.end(), [](const Ward& w) { return w.ended || stands_still(w); });
}

// Stops waiting for processes that even SIGKILL does not end; they go when the kernel releases them.
void Supervisor::leave_behind() {
  for (Ward& w : wards_) {
    if (w.ended) continue;
    std::fprintf(stderr, "%s (process %d) cannot be killed now and is left behind\n", w.name.c_str(),
                 int(w.pid));
    w.ended = true;
    w.status = SIGKILL;
  }
}

void Supervisor::enforce_end() {
  if (ending_) return Clock::now() - killed_ > kUnkillable ? leave_behind() : kill_all();
  if (!others_are_through())
    through_.reset();
  else if (!through_)
    through_ = Clock::now();
  if (through_ && Clock::now() - *through_ > patience_) {
    for (const Ward& w : wards_)
      if (!w.ended)
        std::fprintf(stderr, "%s has not ended %g s after the others and is killed\n", w.name.c_str(),
                     std::chrono::duration<double>(patience_).count());
    return kill_all();
  }
  if (end_by_ == Clock::time_point::max()) return;
  const bool only_stopped =
      std::all_of(wards_.begin(), wards_.end(), [](const Ward& w) { return w.ended || w.stopped; });
  if (Clock::now() >= end_by_ || only_stopped) kill_all();
}

void Supervisor::listen(int patience_ms) {
  std::vector<pollfd> waits;
  if (superior_) waits.push_back({superior_.get(), POLLIN, 0});
  const bool silent =
      std::none_of(wards_.begin(), wards_.end(), [](const Ward& w) { return bool(w.errors); });
  for (const Ward& w : wards_)
    for (const Fd* f : {&w.errors, &w.output})
      if (*f) waits.push_back({f->get(), POLLIN, 0});
  poll(waits.data(), waits.size(), silent ? std::min(patience_ms, 20) : patience_ms);
  for (Ward& w : wards_) {
    hear(w, w.errors, w.error_line, true);
    hear(w, w.output, w.output_line, false);
  }
}

void Supervisor::hear(Ward& w, Fd& from, std::string& line, bool is_error) {
  if (!from) return;
  char buffer[4096];
  ssize_t n;
  while ((n = read(from.get(), buffer, sizeof buffer)) > 0) line.append(buffer, size_t(n));
  if (n == 0) from = {};
  if (!from && !line.empty() && line.back() != '\n' && !w.plain) line += '\n';
  for (size_t end; (is_error || !w.plain) && (end = line.find('\n')) != std::string::npos;) {
    const std::string one = line.substr(0, end + 1);
    line.erase(0, end + 1);
    if (!heard || !heard(w, one.substr(0, end), is_error)) show(w, one, is_error);
  }
  if (is_error || !w.plain) return;
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  line.clear();
}

void Supervisor::show(Ward& w, const std::string& line, bool is_error) {
  if (!is_error) {
    std::printf("%s%s", w.prefix.c_str(), line.c_str());
    std::fflush(stdout);
    return;
  }
  if (shown_.size() > 10000) shown_.clear();
  if (shown_.insert(line).second) std::fprintf(stderr, "%s%s", w.prefix.c_str(), line.c_str());
}

int Supervisor::status() const {
  if (loss_ == Loss::kOfFirstEnds && WIFEXITED(wards_.at(0).status)) return wards_[0].exit_code();
  const bool any_stayed =
      std::any_of(wards_.begin(), wards_.end(), [](const Ward& w) { return !is_lost(w); });
  int killed = 0;
  for (const Ward& w : wards_) {
    if (loss_ == Loss::kIsSurvived && any_stayed && is_lost(w)) continue;
    if (WIFEXITED(w.status) && WEXITSTATUS(w.status) != 0) return WEXITSTATUS(w.status);
    if (WIFSIGNALED(w.status) && killed == 0) killed = w.exit_code();
  }
  return killed;
}

}  // namespace skein::apps
