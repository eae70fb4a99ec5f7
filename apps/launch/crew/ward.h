// Ward: a child process that the launcher supervises.
#pragma once
#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/join/sockets.h"

namespace skein::apps {

// What is known of a ward where losses are replaced.
struct Standing {
  comm::Fd reports;      // on which it reports what superior.h says
  bool member = false;   // it has reported that; of a connection: a worker behind it is a member now
  bool leaving = false;  // it has reported that; of a connection: all workers behind it have left
  bool fresh = false;    // it has taken the place of another
  bool judged = false;   // it has ended, and what follows is decided
  comm::Clock::time_point began{}, ended_at{};
  std::optional<comm::Clock::time_point> fresh_at;  // when a fresh process takes its place
};

// A worker, or a connection that stands for workers.
struct Ward : Standing {
  std::string name;    // "worker 2"
  std::string prefix;  // goes before every line of its output
  comm::Fd errors;     // its stderr
  comm::Fd output;     // its stdout; empty if it shares ours
  // Takes lines "signal N", if a signal to the process would not reach the workers behind it.
  comm::Fd orders;
  std::string unsent;  // orders for which its pipe has had no room yet
  bool plain = false;  // its stdout is passed on byte by byte, without the prefix
  pid_t pid = -1;
  int status = 0;  // as returned by waitpid
  bool ended = false, stopped = false;
  comm::Clock::time_point condemned{};  // when it was ordered to kill its workers
  std::string error_line, output_line;  // incomplete lines

  int exit_code() const;                // 128 + signal
  bool is_lost() const;                 // the ward, a worker behind it, or the connection to them
  void order(const std::string& line);  // if it takes orders; does not wait
  void send_orders();                   // writes what the pipe has room for; the rest stays in `unsent`
};

struct Pipes {
  bool output = false, orders = false, reports = false;
};
// Forks. The child has this signal mask and runs `become`, which must not return, with its stderr (stdout,
// stdin) connected to us. If this process dies, the kernel kills it.
void spawn(Ward&, const Pipes&, const sigset_t& mask, const std::function<void()>& become);

using Wards = std::vector<Ward>;
size_t remaining(const Wards&);  // those that have not ended
void signal_all(Wards&, int signal);

}  // namespace skein::apps
