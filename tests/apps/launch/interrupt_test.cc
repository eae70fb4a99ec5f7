// What signals ask of a worker: that the job stops, or that this worker leaves it.
#include "apps/launch/interrupt.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

namespace skein::apps {
namespace {

// Handlers and flags belong to a process, so each case has its own. Returns how it ended: by a signal,
// negative, or with 1 for told_to_leave() plus 2 for interrupted().
int after(Termination t, const std::function<void()>& signals) {
  const pid_t pid = fork();
  if (pid == 0) {
    catch_interrupts(t);
    signals();
    _exit(int(told_to_leave()) + 2 * int(interrupted()));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}
constexpr int kLeaves = 1, kStops = 2;
void a_second_later() { usleep(1'050'000); }

TEST(Interrupts, SigtermStopsTheJobOrTellsOneWorkerToLeave) {
  EXPECT_EQ(after(Termination::kStopsAll, [] { raise(SIGTERM); }), kStops);
  EXPECT_EQ(after(Termination::kLeaves, [] { raise(SIGTERM); }), kLeaves);
  for (const int s : {SIGINT, SIGHUP}) EXPECT_EQ(after(Termination::kLeaves, [s] { raise(s); }), kStops);
}

// scancel and systemd signal a worker and its launcher, who passes it on as SIGINT.
TEST(Interrupts, WhoIsToLeaveCanStillBeToldThatTheJobStops) {
  EXPECT_EQ(after(Termination::kLeaves, [] { raise(SIGTERM), raise(SIGINT); }), kLeaves + kStops);
  EXPECT_EQ(after(Termination::kLeaves, [] { raise(SIGTERM), a_second_later(), raise(SIGINT); }),
            kLeaves + kStops);
  EXPECT_EQ(after(Termination::kLeaves, [] { raise(SIGINT), raise(SIGTERM); }), kStops);
}

TEST(Interrupts, ASecondOneASecondLaterKills) {
  EXPECT_EQ(after(Termination::kLeaves, [] { raise(SIGTERM), raise(SIGTERM); }), kLeaves);
  EXPECT_EQ(after(Termination::kLeaves, [] { raise(SIGTERM), a_second_later(), raise(SIGTERM); }), -SIGTERM);
  EXPECT_EQ(after(Termination::kLeaves, [] { raise(SIGINT), a_second_later(), raise(SIGTERM); }), -SIGTERM);
  EXPECT_EQ(after(Termination::kStopsAll, [] { raise(SIGINT), a_second_later(), raise(SIGHUP); }), kStops);
}

}  // namespace
}  // namespace skein::apps
