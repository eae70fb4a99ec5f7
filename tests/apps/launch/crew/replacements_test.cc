// The supervisor of an elastic job: who is replaced, when, how often, and how the job ends. The workers are
// stand-ins, forked from the test, that report what real ones would.
#include <sys/resource.h>

#include "tests/apps/launch/replacing.h"

namespace skein::apps {
namespace {

TEST_F(Replacing, AFreshWorkerTakesAKilledOnesPlaceAlsoTheFirsts) {
  for (const int victim : {0, 1, 2}) {
    for (auto& n : stage.lives) n = 0;
    for (auto& n : stage.members) n = 0;
    pace = {.first = 1s};
    EXPECT_EQ(run(3,
                  [&](int seat, int life) {
                    join(seat);
                    if (seat == victim && life == 1) {
                      for (int s : {0, 1, 2}) wait_for_member(s, 1);
                      die();
                    }
                    wait_for_member(victim, 2);
                  }),
              0);
    EXPECT_EQ(stage.lives[victim], 2);
    EXPECT_EQ(std::string(stage.place).substr(0, 5), "seat ");
    EXPECT_TRUE(
        has_said(text("worker ", victim,
                      " was killed by signal 9 (Killed); a fresh worker takes its place in 1 s (1 of 3)\n")))
        << said;
  }
}

TEST_F(Replacing, TheOthersContinueWhenASeatHasHadAllItsFreshWorkers) {
  times = 2;
  let_go_when_judged({1});
  EXPECT_EQ(run(2,
                [&](int seat, int) {
                  join(seat);
                  if (seat == 1) wait_for_member(0, 1), die();
                  wait_for_member(1, 3), wait_for_judgement();
                }),
            0);
  EXPECT_EQ(stage.lives[1], 3);
  EXPECT_TRUE(has_said("takes its place in 0.04 s (2 of 2)")) << said;
  EXPECT_TRUE(has_said("the others continue, since the last of 2 fresh workers has died there\n")) << said;
}

TEST_F(Replacing, NobodyIsReplacedWithoutRestarts) {
  times = 0;
  let_go_when_judged({0});
  EXPECT_EQ(run(2,
                [&](int seat, int) {
                  join(seat);
                  if (seat == 0) wait_for_member(1, 1), die();
                  wait_for_judgement();
                }),
            0);
  EXPECT_EQ(stage.lives[0], 1);
  EXPECT_TRUE(has_said("worker 0 was killed by signal 9 (Killed); the others continue\n")) << said;
}

TEST_F(Replacing, WhoWasGivenUpOrFailedIsReplaced) {
  EXPECT_EQ(run(3,
                [&](int seat, int life) {
                  join(seat);
                  if (seat == 1 && life == 1) _exit(kExitGivenUp);
                  if (seat == 2 && life == 1) _exit(kExitRuntime);
                  wait_for_member(1, 2), wait_for_member(2, 2);
                }),
            0);
  EXPECT_TRUE(has_said("worker 1 was given up by the others; a fresh worker")) << said;
  EXPECT_TRUE(has_said("worker 2 ended with status 1; a fresh worker")) << said;
}

// A usage error would come again; a newcomer that failed before it was a member has said why; SIGTERM
// is a wish.
TEST_F(Replacing, WhoCannotOrWillNotWorkIsNotReplaced) {
  let_go_when_judged({1, 2, 3});
  EXPECT_EQ(run(4,
                [&](int seat, int) {
                  join(seat);
                  if (seat == 0) return wait_for_judgement();
                  wait_for_member(0, 1);
                  if (seat == 1) _exit(kExitUsage);
                  if (seat == 2) report_leaving(), _exit(0);
                  if (seat == 3) raise(SIGTERM);
                }),
            0);
  for (const int seat : {1, 2, 3}) EXPECT_EQ(stage.lives[seat], 1) << seat;
  EXPECT_TRUE(has_said("worker 1 ended with status 2; a fresh worker would end in the same way\n")) << said;
  EXPECT_FALSE(has_said("worker 2")) << said;
  EXPECT_TRUE(has_said("worker 3 was killed by signal 15 (Terminated); it was told to")) << said;
}

TEST_F(Replacing, ANewcomerThatFailsBeforeItIsAMemberIsNotReplaced) {
  tick = [&](Supervisor& team) {
    const Ward& w = team.wards()[1];
    stage.judged = w.fresh && w.judged;
    return true;
  };
  EXPECT_EQ(run(2,
                [&](int seat, int life) {
                  if (life == 2) _exit(kExitRuntime);
                  join(seat);
                  if (seat == 1) wait_for_member(0, 1), die();
                  wait_for_judgement();
                }),
            0);
  EXPECT_EQ(stage.lives[1], 2);
  EXPECT_TRUE(has_said("worker 1 ended with status 1; it was no member yet, and is not replaced\n")) << said;
}

TEST_F(Replacing, AWorkerThatLeavesDoesNotEndTheJob) {
  let_go_when_judged({1});
  EXPECT_EQ(run(3,
                [&](int seat, int life) {
                  join(seat);
                  if (seat == 1) report_leaving(), _exit(0);
                  if (seat == 2 && life == 1) wait_for_judgement(), die();
                  wait_for_member(2, 2);
                }),
            0);
  EXPECT_EQ(stage.lives[2], 2);
}

TEST_F(Replacing, ALossEndsAllBeforeTheJobHasBegun) {
  EXPECT_EQ(run(3,
                [&](int seat, int) {
                  if (seat == 0) _exit(kExitUsage);
                  raise(SIGSTOP);
                }),
            kExitUsage);
  EXPECT_EQ(stage.lives[0], 1);
}

// A loss that is not a number, or a full disk, meets all at the same time.
TEST_F(Replacing, NobodyIsReplacedWhenAllFailTogether) {
  EXPECT_EQ(run(3,
                [&](int seat, int) {
                  join(seat);
                  for (int s : {0, 1, 2}) wait_for_member(s, 1);
                  _exit(kExitRuntime);
                }),
            kExitRuntime);
  for (const int seat : {0, 1, 2}) EXPECT_EQ(stage.lives[seat], 1);
  EXPECT_EQ(said, "");
}

TEST_F(Replacing, ANewcomerThatComesTooLateForAJobThatHasFailedDoesNotMakeItASuccess) {
  EXPECT_EQ(run(2,
                [&](int seat, int life) {
                  if (life == 2) wait_for_judgement(), _exit(0);
                  join(seat);
                  if (seat == 1) wait_for_member(0, 1), die();
                  wait_until([&] { return stage.lives[1] == 2; });
                  stage.judged = true;
                  _exit(kExitRuntime);
                }),
            kExitRuntime);
}

TEST_F(Replacing, ANewcomerIsNotWaitedForWhenTheJobHasEnded) {
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(run(2,
                [&](int seat, int life) {
                  if (life == 2) pause();
                  join(seat);
                  if (seat == 1) wait_for_member(0, 1), die();
                  wait_until([&] { return stage.lives[1] == 2; });
                }),
            0);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
}

TEST_F(Replacing, CtrlCDuringAPauseEndsAll) {
  pace.first = pace.longest = 100s;
  bool sent = false;
  tick = [&](Supervisor& team) {
    if (!sent && team.wards()[1].fresh_at) sent = kill(getpid(), SIGINT) == 0;
    return true;
  };
  EXPECT_EQ(run(2,
                [&](int seat, int) {
                  std::signal(SIGINT, [](int) { _exit(kExitInterrupted); });
                  join(seat);
                  if (seat == 1) wait_for_member(0, 1), die();
                  for (;;) pause();
                }),
            kExitInterrupted);
  EXPECT_TRUE(sent);
  EXPECT_EQ(stage.lives[1], 1);
}

// SIGTERM to one worker means that it leaves; to the launcher it means that all stop.
TEST_F(Replacing, TheLaunchersSigtermReachesWorkersAsSigint) {
  bool sent = false;
  tick = [&](Supervisor&) {
    if (!sent && stage.members[0] && stage.members[1]) sent = kill(getpid(), SIGTERM) == 0;
    return true;
  };
  EXPECT_EQ(run(2,
                [&](int seat, int) {
                  std::signal(SIGINT, [](int) { _exit(kExitInterrupted); });
                  std::signal(SIGTERM, [](int) { _exit(7); });
                  join(seat);
                  for (;;) pause();
                }),
            kExitInterrupted);
}

TEST_F(Replacing, WhoIsLeftWithTooFewEndsTheJobAsInterrupted) {
  times = 0;
  let_go_when_judged({1});
  EXPECT_EQ(run(3,
                [&](int seat, int) {
                  join(seat);
                  for (int s : {0, 1, 2}) wait_for_member(s, 1);
                  if (seat == 1) die();
                  wait_for_judgement();
                  _exit(kExitInterrupted);
                }),
            kExitInterrupted);
}

// Without descriptors left, for a while or for good.
TEST_F(Replacing, AFreshWorkerThatCannotBeStartedIsTriedAgainAndEndsNobodyElse) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  for (const bool for_good : {false, true}) {
    for (auto& n : stage.lives) n = 0;
    for (auto& n : stage.members) n = 0;
    stage.judged = false;
    times = for_good ? 3 : 30;
    tick = [&, for_good](Supervisor& team) {
      const Ward& w = team.wards()[1];
      stage.judged = w.judged && !w.fresh_at;
      const bool none = w.ended && !stage.judged && (for_good || comm::Clock::now() - w.ended_at < 200ms);
      const rlimit now{none ? 3 : before.rlim_cur, before.rlim_max};
      return setrlimit(RLIMIT_NOFILE, &now) == 0;
    };
    EXPECT_EQ(run(2,
                  [&, for_good](int seat, int life) {
                    join(seat);
                    if (seat == 1 && life == 1) wait_for_member(0, 1), die();
                    for_good ? wait_for_judgement() : wait_for_member(1, 2);
                  }),
              0);
    EXPECT_EQ(stage.lives[1], for_good ? 1 : 2);
    EXPECT_TRUE(has_said("worker 1: making a pipe: Too many open files; a fresh worker takes its place in "))
        << said;
    EXPECT_EQ(has_said("the others continue, since the last of 3 fresh workers"), for_good) << said;
  }
}

TEST_F(Replacing, AJobWhoseLastWorkerWasKilledHasFailed) {
  times = 0;
  EXPECT_EQ(run(2,
                [&](int seat, int) {
                  join(seat);
                  wait_for_member(1 - seat, 1);
                  if (seat == 1) report_leaving(), _exit(0);
                  die();
                }),
            128 + SIGKILL);
}

// Of thousands of workers.
TEST_F(Replacing, TheRegisterKeepsTheFirstOfTwoLongClaims) {
  is_top = true;
  const auto claim = [&](int seat, int) {
    join(seat);
    std::optional<std::string> kept;
    while (!kept) kept = claim_epoch(2, std::string(190'000, char('a' + seat)));
    stage.kept[seat] = *kept == std::string(190'000, kept->at(0)) ? kept->at(0) : '?';
  };
  EXPECT_EQ(run(2, claim), 0);
  EXPECT_TRUE(stage.kept[0] == 'a' || stage.kept[0] == 'b') << char(stage.kept[0]);
  EXPECT_EQ(stage.kept[1], stage.kept[0]);
}

}  // namespace
}  // namespace skein::apps
