// One ward: its start, its orders and its end.
#include "apps/launch/crew/ward.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "apps/launch/crew/losses.h"
#include "apps/launch/crew/superior.h"

namespace skein::apps {
namespace {

using comm::Fd;

constexpr size_t kMostUnsent = 16 << 20;  // bytes of orders to one ward

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

void spawn(Ward& w, const Pipes& pipes, const sigset_t& mask, const std::function<void()>& become) {
  auto [errors, errors_of_child] = make_pipe();
  Fd output, output_of_child, orders, orders_of_child, reports, reports_of_child;
  if (pipes.output) std::tie(output, output_of_child) = make_pipe();
  if (pipes.orders) std::tie(orders_of_child, orders) = make_pipe();
  if (pipes.reports) std::tie(reports, reports_of_child) = make_socket_pair();
  std::fflush(nullptr);
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) comm::fail_system("starting " + w.name);
  if (pid == 0) {
    // Its own process group, so that the terminal's Ctrl-C reaches only us and we pass it on once.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    dup2(errors_of_child.get(), STDERR_FILENO);
    if (output_of_child) dup2(output_of_child.get(), STDOUT_FILENO);
    if (orders_of_child) dup2(orders_of_child.get(), STDIN_FILENO);
    if (reports_of_child) {
      fcntl(reports_of_child.get(), F_SETFD, 0);
      setenv(kReportsVariable, std::to_string(reports_of_child.get()).c_str(), 1);
    }
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    become();
    _exit(127);
  }
  w.pid = pid;
  w.began = comm::Clock::now();
  w.errors = std::move(errors), w.output = std::move(output), w.orders = std::move(orders);
  w.reports = std::move(reports);
  for (const Fd* f : {&w.errors, &w.output, &w.orders})
    if (*f) comm::set_nonblocking(*f);
}

size_t remaining(const Wards& wards) {
  return size_t(std::count_if(wards.begin(), wards.end(), [](const Ward& w) { return !w.ended; }));
}

void signal_all(Wards& wards, int s) {
  for (Ward& w : wards) {
    if (w.pid <= 0 || w.ended) continue;
    if (w.orders)
      w.order("signal " + std::to_string(s));
    else
      kill(w.pid, s);
  }
}

}  // namespace skein::apps
