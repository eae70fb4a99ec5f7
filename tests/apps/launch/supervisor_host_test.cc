// The supervisor of one host's part of an elastic job, which a launcher elsewhere tells when the
// job has ended.
#include <fcntl.h>

#include "tests/apps/launch/replacing.h"

namespace skein::apps {
namespace {

// On --hosts the job may go on elsewhere, so the only worker of a host is replaced, too; and none any more
// when the caller says that the job has ended.
class ReplacingOnAHost : public Replacing {
 protected:
  ReplacingOnAHost() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) comm::fail_system("making a pipe");
    orders = comm::Fd(ends[0]), caller = comm::Fd(ends[1]);
  }
  void order(const std::string& line) {
    ASSERT_EQ(write(caller.get(), line.data(), line.size()), ssize_t(line.size()));
  }
  comm::Fd caller;
};

TEST_F(ReplacingOnAHost, TheOnlyWorkerIsReplacedUntilTheJobHasEnded) {
  pace = {.first = 50ms, .longest = 1s};  // long enough to be seen by tick
  bool told = false;
  times = 20;
  tick = [&](Supervisor& team) {
    if (!told && stage.lives[0] == 3 && team.wards()[0].fresh_at) order(text(kThrough, '\n')), told = true;
    return true;
  };
  EXPECT_EQ(run(1,
                [&](int seat, int) {
                  join(seat);
                  die();
                }),
            128 + SIGKILL);
  EXPECT_EQ(stage.lives[0], 3);
  const std::vector<std::string> life = {text(kMember, "seat 0"), kDeserted};
  ASSERT_EQ(reports.size(), 6u);
  for (size_t i = 0; i < reports.size(); ++i) EXPECT_EQ(reports[i], life[i % 2]);
}

TEST_F(ReplacingOnAHost, AJobThatReplacesNobodyEndsWithItsWorkers) {
  Supervisor team(Loss::kIsSurvived, 0.3);
  team.start("worker 0", {}, [](size_t) { _exit(0); });
  team.obey(std::move(orders));
  EXPECT_EQ(team.run(), 0);
}

TEST_F(ReplacingOnAHost, WorkersLeaveTheJobWhenTheCallerIsLost) {
  tick = [&](Supervisor&) {
    if (stage.members[0]) caller = {};
    return true;
  };
  EXPECT_EQ(run(1,
                [&](int seat, int) {
                  caller = {};
                  std::signal(SIGTERM, [](int) { report_leaving(), _exit(0); });
                  join(seat);
                  for (;;) pause();
                }),
            0);
  EXPECT_TRUE(has_said("the program that started these workers is gone; they leave the job\n")) << said;
}

}  // namespace
}  // namespace skein::apps
