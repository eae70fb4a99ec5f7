// The signal handlers behind interrupt.h.
#include "apps/launch/interrupt.h"

#include <csignal>
#include <ctime>

namespace skein::apps {
namespace {

// How much has been asked of the process.
enum : std::sig_atomic_t { kNothing, kToLeave, kToStop };
volatile std::sig_atomic_t g_interrupted = 0, g_come_again = 0, g_leave = 0, g_asked = kNothing;
volatile std::sig_atomic_t g_term_asks = kToStop;
volatile time_t g_asked_seconds = 0;
volatile long g_asked_nanoseconds = 0;

void on_interrupt(int s) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::sig_atomic_t wanted = s == SIGTERM ? g_term_asks : std::sig_atomic_t(kToStop);
  if (g_asked >= wanted) {
    if (s == SIGHUP) return;
    const double since =
        double(now.tv_sec - g_asked_seconds) + 1e-9 * double(now.tv_nsec - g_asked_nanoseconds);
    if (since < 1) return;
    std::signal(s, SIG_DFL);
    std::raise(s);
    return;
  }
  g_asked_seconds = now.tv_sec;
  g_asked_nanoseconds = now.tv_nsec;
  g_asked = wanted;
  (wanted == kToLeave ? g_leave : g_interrupted) = 1;
}

void on_usr1(int) {
  g_come_again = 1;
  g_interrupted = 1;
}

// Generated matrix kernels use the stack pointer as a general register, so a handler's frame must not go
// where it points. This stack is for the main thread, which gets the process's signals.
alignas(64) char g_stack[64 * 1024];

void handle(int s, void (*handler)(int)) {
  // Workers that are threads come here, too, but only one thread may use this stack.
  [[maybe_unused]] static const bool once = [] {
    stack_t own{};
    own.ss_sp = g_stack;
    own.ss_size = sizeof g_stack;
    return sigaltstack(&own, nullptr) == 0;
  }();
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(s, &action, nullptr);
}

}  // namespace

void catch_interrupts(Termination t) {
  g_term_asks = t == Termination::kLeaves ? kToLeave : kToStop;
  handle(SIGINT, on_interrupt);
  handle(SIGTERM, on_interrupt);
  struct sigaction now {};
  if (sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) handle(SIGHUP, on_interrupt);
}
void catch_requeue_signal() { handle(SIGUSR1, on_usr1); }

void outlive_readers() { std::signal(SIGPIPE, SIG_IGN); }
void say(std::FILE* out, const std::string& words) {
  std::fputs(words.c_str(), out);
  std::fflush(out);
}

bool interrupted() { return g_interrupted != 0; }
bool told_to_leave() { return g_leave != 0; }
bool asked_to_come_again() { return g_come_again != 0; }

}  // namespace skein::apps
