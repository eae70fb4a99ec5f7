// Supervisor: the processes we started, signals passed on to them, what they say, and how they end.
#pragma once
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/join/sockets.h"

namespace skein::apps {

// What becomes of a job when one of its workers is lost.
enum class Loss : uint8_t {
  kEndsAll,      // the others get time to notice and to save
  kIsSurvived,   // the others continue, whichever it was
  kOfFirstEnds,  // likewise, unless it was the first, whose end is also the job's
};
constexpr int kExitGivenUp = 3;  // of a worker without which the others continue
// How long whoever the others gave up is waited for when they are through. `deadline`: of a wait between
// workers, which may be for ever.
inline double patience_of_launcher(double deadline) { return std::min(deadline, 60.0); }

// One of them.
struct Ward {
  std::string name;    // "worker 2"
  std::string prefix;  // before every line it says
  comm::Fd errors;     // its stderr
  comm::Fd output;     // its stdout; empty: ours
  comm::Fd
      orders;  // takes lines "signal N", where a signal to the process would not reach those it stands for
  bool plain = false;  // its stdout is passed on byte by byte, without the prefix
  pid_t pid = -1;
  int status = 0;  // as of waitpid
  bool ended = false, stopped = false;
  comm::Clock::time_point condemned{};  // when it was ordered to kill its own
  std::string error_line, output_line;  // as far as they have come

  bool failed() const { return ended && status != 0; }
  int exit_code() const;  // 128 + signal
};

// SIGINT, SIGTERM and SIGHUP are passed on once, a second one kills (but not a second SIGHUP: a terminal that
// closes hangs up more than once); SIGUSR1 is passed on every time. Ctrl-Z (SIGTSTP) stops the wards and then
// this process, and when this one is continued, so are they, and the time between counts nowhere. When a ward
// fails whose loss ends all, the others get time to notice and to save, then they are killed too; one that is
// stopped does not hold up the end. Where the others continue, a ward that is left when they are through is
// killed after `patience`. What several say to stderr alike is shown once. If this process dies, the kernel
// kills what it started. For a process without other threads; one at a time.
class Supervisor {
 public:
  explicit Supervisor(Loss = Loss::kEndsAll, double patience = 60);  // seconds
  ~Supervisor();                                                     // kills who is left
  Supervisor(const Supervisor&) = delete;

  struct Pipes {
    bool output = false, orders = false;
  };
  // Forks. The child runs `become`, which is not to return, with its stderr (stdout, stdin) connected to us.
  Ward& start(const std::string& name, const Pipes&, const std::function<void(size_t number)>& become);
  std::vector<Ward>& wards() { return wards_; }

  // Lines "signal N" are as if the signal had come to us; its end as if who gives the orders were lost: wards
  // are interrupted and get half a minute.
  void obey(comm::Fd orders);
  // A line of a ward's stdout or stderr; true: it was meant for us and is not shown.
  std::function<bool(Ward&, const std::string& line, bool is_error)> heard;
  // Some time went by, 0.1 s at most. False: end them all, now.
  std::function<bool()> tick;

  // Until all have ended, but for those that cannot even be killed. The status: 0, or that of the first
  // that failed by itself, or 128 + signal. Those without which the others continue do not count,
  // unless all were lost.
  int run();
  bool asked() const { return asked_ != comm::Clock::time_point{}; }
  void send_line(Ward&, const std::string& line);

 private:
  size_t remaining() const;
  void signal_all(int s);
  void kill_all();
  void take_signals();
  void take_orders();
  void ask(int s);
  void hold();
  void reap();
  void enforce_end();
  bool others_are_through() const;
  void leave_behind();
  void listen(int patience_ms);
  void hear(Ward&, comm::Fd&, std::string& line, bool is_error);
  void show(Ward&, const std::string& line, bool is_error);
  int status() const;

  const Loss loss_;
  const comm::Clock::duration patience_;
  const pid_t parent_;
  std::vector<Ward> wards_;
  sigset_t signals_, before_;
  comm::Fd superior_;
  std::string superior_line_;
  comm::Clock::time_point asked_{}, end_by_ = comm::Clock::time_point::max();
  std::optional<comm::Clock::time_point> through_;  // since when the others are
  comm::Clock::time_point killed_{};                // when kill_all() was first called
  bool ending_ = false;                             // whoever is left is killed
  std::set<std::string> shown_;
};

}  // namespace skein::apps
