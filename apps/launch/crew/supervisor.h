// Supervisor: watches the child processes, passes signals on to them, and handles their
// output and their ends.
#pragma once
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/launch/crew/restarts.h"
#include "comm/join/sockets.h"

namespace skein::apps {

// What happens to a job when one of its workers is lost.
enum class Loss : uint8_t {
  kEndsAll,      // the others get time to notice and to save
  kIsSurvived,   // the others continue
  kOfFirstEnds,  // the others continue, unless the first was lost; its end is the job's
  // The others continue, and a fresh worker takes its place (replace_by()). Until a first worker has reported
  // that it is a member of the job, the job has not begun, and a loss ends all.
  kIsReplaced,
};
// What a launcher does about lost workers.
struct Losses {
  Loss loss = Loss::kEndsAll;
  double patience = 60;     // in seconds, as in Supervisor
  int restarts = 0;         // fresh workers in one seat, with kIsReplaced
  bool has_server = false;  // the last rank only serves
};
// The exit statuses of the programs; kExitGivenUp is that of a worker without which the others continue.
inline constexpr int kExitRuntime = 1, kExitUsage = 2, kExitGivenUp = 3, kExitInterrupted = 130;
// How long to wait for workers that the others have given up, once the others have finished. `deadline` is
// that of a wait between workers, which may be forever.
inline double patience_of_launcher(double deadline) { return std::min(deadline, 60.0); }

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

// A child process: a worker, or a connection that stands for workers.
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

  bool failed() const { return ended && status != 0; }
  int exit_code() const;                // 128 + signal
  bool is_lost() const;                 // the ward, a worker behind it, or the connection to them
  void order(const std::string& line);  // if it takes orders; does not wait
  void send_orders();                   // writes what the pipe has room for; the rest stays in `unsent`
};

// SIGINT, SIGTERM and SIGHUP are passed on once; a second one kills (but not a second SIGHUP, because a
// closing terminal hangs up more than once). Where losses are replaced SIGTERM is passed on as SIGINT: there a
// worker that itself gets SIGTERM leaves, and the others continue. SIGUSR1 is passed on every time. Ctrl-Z
// (SIGTSTP) stops the wards and then this process; when this process is continued, so are they, and the time
// in between counts for no timeout. When a ward fails whose loss ends all, the others get time to notice and to
// save, then they are killed, too; a stopped ward does not delay the end. If the others may continue, a ward
// that is left when they have finished is killed after `patience`. Equal lines of several wards on stderr are
// shown once. If this process dies, the kernel kills the wards. The process must have no other threads and only
// one Supervisor at a time.
class Supervisor {
 public:
  explicit Supervisor(Loss = Loss::kEndsAll, double patience = 60);  // seconds
  ~Supervisor();                                                     // kills the wards that are left
  Supervisor(const Supervisor&) = delete;

  struct Pipes {
    bool output = false, orders = false, reports = false;
  };
  // Forks. The child runs `become`, which must not return, with its stderr (stdout, stdin) connected to us.
  Ward& start(const std::string& name, const Pipes&, const std::function<void(size_t number)>& become);
  std::vector<Ward>& wards() { return wards_; }
  // With Loss::kIsReplaced. When a member has died, and some time before the job ends, the child that takes
  // its place runs `become`, after a pause. A worker is not replaced if it left, met a usage error, or failed
  // by itself before it was a member. Each decision is a line on stderr.
  void replace_by(Restarts, std::function<void(size_t number)> become);
  // Where fresh processes find the job: what the last member to report has said.
  const std::string& place() const { return job_.place; }
  // Takes a report as if the ward had sent it. Where there is `reported`, claims are for those who get it.
  void take_report(Ward&, const std::string& report);
  // Whether all wards have left the job, or were lost after others had left it.
  bool all_left() const;

  // A line "signal N" acts as if we had received the signal; kThrough says that fresh workers would come too
  // late. The end of the stream means that the process that gives the orders is lost: wards are interrupted (or
  // told to leave, where losses are replaced) and get half a minute.
  void obey(comm::Fd orders);
  // Receives each line of a ward's stdout or stderr; returns true if the line was for us and
  // must not be shown.
  std::function<bool(Ward&, const std::string& line, bool is_error)> heard;
  // Receives reports for the program that gives the orders: those of the wards, and kDeserted.
  std::function<void(const std::string&)> reported;
  // Is called at least every 0.1 s. Returns false to end all wards now.
  std::function<bool()> tick;

  // Runs until all wards have ended, except those that cannot be killed. Returns 0, or the status of the
  // first ward that failed by itself, or 128 + signal. Wards without which the others continue do not count,
  // unless all were lost. With kIsReplaced it is 0 if any ward has finished the job.
  int run();
  bool asked() const { return asked_ != comm::Clock::time_point{}; }

 private:
  // With Loss::kIsReplaced: what is known of the job.
  struct Job {
    bool begun = false;      // there has been a member
    bool finished = false;   // a worker has completed it, or no worker is left that could
    bool suspended = false;  // by an order; otherwise this process itself stands still
    bool deserted = false;   // no ward is a member, and the program that gives the orders knows
    std::string place;
    std::map<uint32_t, std::string> kept;  // the first claim of each epoch of the membership
    Restarts restarts;
    std::function<void(size_t)> become;
  };

  void spawn(Ward&, const Pipes&, const std::function<void()>& become);
  size_t remaining() const;
  void signal_all(int s);
  void kill_all();
  void take_signals();
  void take_orders();
  void ask(int s);
  void hold();
  void reap();
  void end_soon_after(const Ward&);
  void take_reports();
  void take_claim(Ward&, const std::string& words);
  void answer(Ward&, const std::string& words);
  void judge(Ward&);
  std::string what_follows(Ward&);
  void finish();
  bool deserted() const;
  void replace_the_dead();
  bool expects_fresh() const;
  bool is_over() const { return ending_ || asked() || job_.finished; }
  void enforce_end();
  bool others_are_through() const;
  void leave_behind();
  void listen(int patience_ms);
  void hear(Ward&, comm::Fd&, std::string& line, bool is_error);
  void show(Ward&, const std::string& line, bool is_error);
  int status() const;
  int status_of_survivors() const;

  const Loss loss_;
  const comm::Clock::duration patience_;
  const pid_t parent_;
  std::vector<Ward> wards_;
  sigset_t signals_, before_;
  comm::Fd superior_;
  std::string superior_line_;
  comm::Clock::time_point asked_{}, end_by_ = comm::Clock::time_point::max();
  std::optional<comm::Clock::time_point> through_;  // since when the others have finished
  comm::Clock::time_point killed_{};                // when kill_all() was first called
  bool ending_ = false;                             // the wards that are left are being killed
  std::set<std::string> shown_;
  Job job_;
};

}  // namespace skein::apps
