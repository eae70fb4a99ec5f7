// The signal handler behind interrupt.h: it sets a flag and puts the default action back.
#include "apps/interrupt.h"

#include <csignal>

namespace skein::apps {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

void on_signal(int) {
  g_interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return g_interrupted != 0; }

}  // namespace skein::apps
