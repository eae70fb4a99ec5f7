// Supervisor: fork, poll, waitpid, and timeouts.
#include "apps/launch/crew/supervisor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "apps/base/host.h"
#include "apps/launch/crew/superior.h"

namespace skein::apps {
namespace {

using comm::Clock;
using comm::Fd;

// How long the others get after a ward has failed: they must first miss a killed worker, while one that ended
// with an error has told its peers.
constexpr auto kGraceAfterKill = std::chrono::seconds(180), kGraceAfterError = std::chrono::seconds(30);
constexpr auto kOneKeystroke = std::chrono::seconds(1);  // timeout(1) signals a process and then its group
constexpr size_t kMostUnsent = 16 << 20;                 // bytes of orders to one ward
constexpr auto kLastOrder = std::chrono::seconds(2);     // for a ward that is ordered to kill its workers
// After SIGKILL, in case the process hangs in the kernel.
constexpr auto kUnkillable = std::chrono::seconds(10);

std::pair<Fd, Fd> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) comm::fail_system("making a pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

std::pair<Fd, Fd> make_socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    comm::fail_system("making a pair of sockets");
  const int room =
      kLongestReport;  // the kernel's default is smaller, and it refuses a report that does not fit
  for (const int end : ends) setsockopt(end, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  return {Fd(ends[0]), Fd(ends[1])};
}

// Whether the process is stopped, traced, or in uninterruptible sleep.
bool stands_still(const Ward& w) {
  const std::string state = process_state(w.pid);
  return !state.empty() && std::strchr("TtD", state[0]) != nullptr;
}

}  // namespace

bool Ward::is_lost() const {
  return (exit_code() > 128 && exit_code() != kExitInterrupted) || exit_code() == kExitGivenUp;
}
int Ward::exit_code() const { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

void Ward::order(const std::string& line) {
  if (orders) unsent += line + '\n';
  send_orders();
}
// A ward that never reads its orders is taken for a dead connection.
void Ward::send_orders() {
  while (orders && !unsent.empty()) {
    const ssize_t n = write(orders.get(), unsent.data(), unsent.size());
    if (n > 0)
      unsent.erase(0, size_t(n));
    else if (errno == EAGAIN && unsent.size() <= kMostUnsent)
      return;
    else if (errno != EINTR)
      orders = {};
  }
}

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
  Ward w;
  w.name = name;
  spawn(w, pipes, [&] { become(number); });
  wards_.push_back(std::move(w));
  return wards_.back();
}

// Makes a new process of the ward.
void Supervisor::spawn(Ward& w, const Pipes& pipes, const std::function<void()>& become) {
  auto [errors, errors_of_child] = make_pipe();
  Fd output, output_of_child, orders, orders_of_child, reports, reports_of_child;
  if (pipes.output) std::tie(output, output_of_child) = make_pipe();
  if (pipes.orders) std::tie(orders_of_child, orders) = make_pipe();
  if (pipes.reports) std::tie(reports, reports_of_child) = make_socket_pair();
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) comm::fail_system("starting " + w.name);
  if (pid == 0) {
    // Its own process group, so that the terminal's Ctrl-C reaches only us and we pass it on once.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent_) _exit(1);
    dup2(errors_of_child.get(), STDERR_FILENO);
    if (output_of_child) dup2(output_of_child.get(), STDOUT_FILENO);
    if (orders_of_child) dup2(orders_of_child.get(), STDIN_FILENO);
    if (reports_of_child) {
      fcntl(reports_of_child.get(), F_SETFD, 0);
      setenv(kReportsVariable, std::to_string(reports_of_child.get()).c_str(), 1);
    }
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    become();
    _exit(127);
  }
  w.pid = pid;
  w.began = Clock::now();
  w.errors = std::move(errors), w.output = std::move(output), w.orders = std::move(orders);
  w.reports = std::move(reports);
  for (const Fd* f : {&w.errors, &w.output, &w.orders})
    if (*f) comm::set_nonblocking(*f);
}

void Supervisor::obey(Fd orders) {
  comm::set_nonblocking(orders);
  superior_ = std::move(orders);
}

int Supervisor::run() {
  while (remaining() > 0 || expects_fresh()) {
    listen(100);
    take_signals();
    take_orders();
    reap();
    take_reports();
    replace_the_dead();
    if (tick && !ending_ && !tick()) kill_all();
    enforce_end();
  }
  listen(0);
  return status();
}

size_t Supervisor::remaining() const {
  return size_t(std::count_if(wards_.begin(), wards_.end(), [](const Ward& w) { return !w.ended; }));
}

void Supervisor::signal_all(int s) {
  for (Ward& w : wards_) {
    if (w.pid <= 0 || w.ended) continue;
    if (w.orders)
      w.order("signal " + std::to_string(s));
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
      w.order("signal " + std::to_string(SIGKILL));
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
    if (s != SIGUSR1) job_.suspended = s == SIGTSTP;
    signal_all(s);
  } else if (asked_ == Clock::time_point{}) {
    asked_ = Clock::now();
    signal_all(s == SIGTERM && loss_ == Loss::kIsReplaced ? SIGINT : s);
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
  for (Ward& w : wards_) {
    w.began += held, w.ended_at += held;
    if (w.fresh_at) *w.fresh_at += held;
  }
}

void Supervisor::take_orders() {
  if (!superior_) return;
  char buffer[512];
  ssize_t n;
  while ((n = read(superior_.get(), buffer, sizeof buffer)) > 0) superior_line_.append(buffer, size_t(n));
  for (size_t end; (end = superior_line_.find('\n')) != std::string::npos; superior_line_.erase(0, end + 1)) {
    int s = 0;
    if (std::sscanf(superior_line_.c_str(), "signal %d", &s) == 1 && s > 0 && s < NSIG) ask(s);
    if (superior_line_.starts_with(text(kThrough, '\n'))) finish();
    if (superior_line_.starts_with(kRegister))
      for (Ward& w : wards_) answer(w, superior_line_.substr(0, end));
  }
  if (n != 0) return;
  superior_ = {};
  // If the workers elsewhere are lost to it, too, then all leave at once, which means that all stop.
  const bool others_continue = loss_ == Loss::kIsReplaced && job_.begun;
  std::fprintf(stderr, "the program that started these workers is gone; they %s\n",
               others_continue ? "leave the job" : "stop");
  if (!asked() && others_continue)
    asked_ = Clock::now(), signal_all(SIGTERM);
  else if (!asked())
    ask(SIGINT);
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
    w->ended_at = Clock::now();
    if (status == 0 || loss_ == Loss::kIsReplaced) continue;  // judge() has more to consider
    if (WIFSIGNALED(status) && !ending_ && !asked())
      std::fprintf(stderr, "%s was killed by signal %d (%s)\n", w->name.c_str(), WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
    if (loss_ == Loss::kIsSurvived || (loss_ == Loss::kOfFirstEnds && w != wards_.begin())) continue;
    end_soon_after(*w);
  }
}

void Supervisor::end_soon_after(const Ward& w) {
  const auto patience = w.is_lost() ? Clock::duration(kGraceAfterKill) : Clock::duration(kGraceAfterError);
  end_by_ = std::min(end_by_, w.ended_at + patience);
}

// Whether the wards that are left do nothing for the job any more. If workers may leave before the others
// have finished, that is certain only of wards that stand still.
bool Supervisor::others_are_through() const {
  if (loss_ == Loss::kEndsAll || remaining() == 0 || remaining() == wards_.size()) return false;
  if (loss_ == Loss::kOfFirstEnds) return wards_[0].ended;
  if (loss_ == Loss::kIsReplaced && !job_.finished) return false;
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

int Supervisor::status() const {
  if (loss_ == Loss::kIsReplaced) return status_of_survivors();
  if (loss_ == Loss::kOfFirstEnds && WIFEXITED(wards_.at(0).status)) return wards_[0].exit_code();
  const bool any_stayed =
      std::any_of(wards_.begin(), wards_.end(), [](const Ward& w) { return !w.is_lost(); });
  int killed = 0;
  for (const Ward& w : wards_) {
    if (loss_ == Loss::kIsSurvived && any_stayed && w.is_lost()) continue;
    if (WIFEXITED(w.status) && WEXITSTATUS(w.status) != 0) return WEXITSTATUS(w.status);
    if (WIFSIGNALED(w.status) && killed == 0) killed = w.exit_code();
  }
  return killed;
}

}  // namespace skein::apps
