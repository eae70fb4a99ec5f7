// Supervisor: watches the child processes, passes signals on to them, and handles their
// output and their ends.
#pragma once
#include <functional>
#include <string>

#include "apps/launch/crew/ending.h"
#include "apps/launch/crew/losses.h"
#include "apps/launch/crew/output.h"
#include "apps/launch/crew/replacements.h"
#include "apps/launch/crew/ward.h"

namespace skein::apps {

// SIGINT, SIGTERM and SIGHUP are passed on once; a second one kills (but not a second SIGHUP, because a
// closing terminal hangs up more than once). Where losses are replaced SIGTERM is passed on as SIGINT: there
// a worker that itself gets SIGTERM leaves, and the others continue. SIGUSR1 is passed on every time. Ctrl-Z
// (SIGTSTP) stops the wards and then this process; when this process is continued, so are they, and the time
// in between counts for no timeout. When a ward fails whose loss ends all, the others get time to notice and
// to save, then they are killed, too; a stopped ward does not delay the end. If the others may continue, a
// ward that is left when they have finished is killed after `patience`. Equal lines of several wards on
// stderr are shown once. If this process dies, the kernel kills the wards. The process must have no other
// threads and only one Supervisor at a time.
class Supervisor {
 public:
  explicit Supervisor(Loss = Loss::kEndsAll, double patience = 60);  // seconds
  ~Supervisor();                                                     // kills the wards that are left
  Supervisor(const Supervisor&) = delete;

  // The child runs `become` (spawn()).
  Ward& start(const std::string& name, const Pipes&, const std::function<void(size_t number)>& become);
  Wards& wards() { return wards_; }
  Output& output() { return output_; }
  Replacements& replacements() { return replacements_; }  // for Loss::kIsReplaced

  // A line "signal N" acts as if we had received the signal; kThrough says that fresh workers would come too
  // late. The end of the stream means that the process that gives the orders is lost: wards are interrupted
  // (or told to leave, where losses are replaced) and get half a minute.
  void obey(comm::Fd orders);
  // Is called at least every 0.1 s. Returns false to end all wards now.
  std::function<bool()> tick;

  // Runs until all wards have ended, except those that cannot be killed. Returns 0, or the status of the
  // first ward that failed by itself, or 128 + signal. Wards without which the others continue do not count,
  // unless all were lost. With kIsReplaced it is 0 if any ward has finished the job.
  int run();
  bool asked() const { return ending_.asked(); }

 private:
  void wait_for_words(int patience_ms);
  void take_signals();
  void take_orders();
  void lose_superior();
  void ask(int s);
  void hold();
  void reap();
  bool others_are_through() const;
  int status() const;

  const Loss loss_;
  Wards wards_;
  sigset_t signals_, before_;
  Ending ending_;
  Replacements replacements_;
  Output output_;
  comm::Fd superior_;
  std::string superior_line_;
};

}  // namespace skein::apps
