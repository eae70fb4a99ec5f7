// Supervisor: poll, waitpid, signals and orders.
#include "apps/launch/crew/supervisor.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "apps/base/host.h"
#include "apps/launch/crew/superior.h"

namespace skein::apps {
namespace {

using comm::Clock;
using comm::Fd;

constexpr auto kOneKeystroke = std::chrono::seconds(1);  // timeout(1) signals a process and then its group

// Whether the process is stopped, traced, or in uninterruptible sleep.
bool stands_still(const Ward& w) {
  const std::string state = process_state(w.pid);
  return !state.empty() && std::strchr("TtD", state[0]) != nullptr;
}

}  // namespace

Supervisor::Supervisor(Loss loss, double patience)
    : loss_(loss), ending_(wards_, patience), replacements_(wards_, ending_, before_) {
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
  spawn(w, pipes, before_, [&] { become(number); });
  wards_.push_back(std::move(w));
  return wards_.back();
}

void Supervisor::obey(Fd orders) {
  comm::set_nonblocking(orders);
  superior_ = std::move(orders);
}

int Supervisor::run() {
  while (remaining(wards_) > 0 ||
         (loss_ == Loss::kIsReplaced && superior_ && replacements_.expects_fresh())) {
    wait_for_words(100);
    for (Ward& w : wards_) w.send_orders(), output_.pass_on(w);
    take_signals();
    take_orders();
    reap();
    replacements_.take_reports();
    if (loss_ == Loss::kIsReplaced) replacements_.replace_the_dead(bool(superior_));
    if (tick && !ending_.kills() && !tick()) ending_.kill_all();
    ending_.enforce(others_are_through());
  }
  for (Ward& w : wards_) output_.pass_on(w);
  return status();
}

void Supervisor::wait_for_words(int patience_ms) {
  std::vector<pollfd> waits;
  if (superior_) waits.push_back({superior_.get(), POLLIN, 0});
  const bool silent =
      std::none_of(wards_.begin(), wards_.end(), [](const Ward& w) { return bool(w.errors); });
  for (const Ward& w : wards_) {
    for (const Fd* f : {&w.errors, &w.output, &w.reports})
      if (*f) waits.push_back({f->get(), POLLIN, 0});
    if (w.orders && !w.unsent.empty()) waits.push_back({w.orders.get(), POLLOUT, 0});
  }
  poll(waits.data(), waits.size(), silent ? std::min(patience_ms, 20) : patience_ms);
}

void Supervisor::take_signals() {
  timespec now{0, 0};
  for (int s; (s = sigtimedwait(&signals_, nullptr, &now)) > 0;)
    if (s != SIGCHLD) ask(s);
}

void Supervisor::ask(int s) {
  if (s == SIGKILL) {
    ending_.kill_all();
  } else if (s == SIGTSTP && !superior_) {
    hold();
  } else if (s == SIGUSR1 || s == SIGTSTP || s == SIGCONT) {
    if (s != SIGUSR1) replacements_.suspend(s == SIGTSTP);
    signal_all(wards_, s);
  } else if (!asked()) {
    ending_.ask();
    signal_all(wards_, s == SIGTERM && loss_ == Loss::kIsReplaced ? SIGINT : s);
  } else if (s != SIGHUP && ending_.since_asked() > kOneKeystroke) {
    ending_.kill_all();
  }
}

// Wards are in their own process groups, which the terminal's Ctrl-Z does not reach. Those that take orders
// keep running to receive the next one; they stop and continue only their own workers.
void Supervisor::hold() {
  const auto began = Clock::now();
  signal_all(wards_, SIGTSTP);
  raise(SIGSTOP);
  signal_all(wards_, SIGCONT);
  const auto held = Clock::now() - began;
  ending_.delay(held);
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
    if (superior_line_.starts_with(text(kThrough, '\n'))) replacements_.finish();
    if (superior_line_.starts_with(kRegister)) replacements_.answer(superior_line_.substr(0, end));
  }
  if (n == 0) lose_superior();
}

// If the workers elsewhere are lost to it, too, then all leave at once, which means that all stop.
void Supervisor::lose_superior() {
  superior_ = {};
  const bool others_continue = loss_ == Loss::kIsReplaced && replacements_.begun();
  std::fprintf(stderr, "the program that started these workers is gone; they %s\n",
               others_continue ? "leave the job" : "stop");
  if (!asked() && others_continue)
    ending_.ask(), signal_all(wards_, SIGTERM);
  else if (!asked())
    ask(SIGINT);
  ending_.soon();
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
    if (status == 0 || loss_ == Loss::kIsReplaced) continue;  // replacements_ has more to consider
    if (WIFSIGNALED(status) && !ending_.kills() && !asked())
      std::fprintf(stderr, "%s was killed by signal %d (%s)\n", w->name.c_str(), WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
    if (loss_ == Loss::kIsSurvived || (loss_ == Loss::kOfFirstEnds && w != wards_.begin())) continue;
    ending_.soon_after(*w);
  }
}

// Whether the wards that are left do nothing for the job any more. If workers may leave before the others
// have finished, that is certain only of wards that stand still.
bool Supervisor::others_are_through() const {
  if (loss_ == Loss::kEndsAll || remaining(wards_) == 0 || remaining(wards_) == wards_.size()) return false;
  if (loss_ == Loss::kOfFirstEnds) return wards_[0].ended;
  if (loss_ == Loss::kIsReplaced && !replacements_.finished()) return false;
  return std::all_of(wards_.begin(), wards_.end(), [](const Ward& w) { return w.ended || stands_still(w); });
}

int Supervisor::status() const {
  if (loss_ == Loss::kIsReplaced) return replacements_.status();
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
