// The supervisor: how a job ends whose workers end by status, by a signal, or not at all.
#include "apps/launch/crew/supervisor.h"

#include <gtest/gtest.h>

#include <csignal>

namespace skein {
namespace {

// The status of a job whose workers end like this: by status, by a signal (above 128), or not
// at all (-1: stopped).
int status_of(apps::Loss loss, const std::vector<int>& ends) {
  apps::Supervisor team(loss, 0.3);
  for (size_t i = 0; i < ends.size(); ++i)
    team.start("worker " + std::to_string(i), {}, [&](size_t) {
      if (ends[i] < 0) raise(SIGSTOP);
      if (ends[i] > 128) raise(ends[i] - 128);
      _exit(ends[i]);
    });
  return team.run();
}

TEST(Supervisor, AJobThatSurvivedItsLostWorkersEndsWell) {
  using apps::Loss;
  for (const Loss loss : {Loss::kIsSurvived, Loss::kOfFirstEnds}) {
    EXPECT_EQ(status_of(loss, {0, 0, 137}), 0);
    EXPECT_EQ(status_of(loss, {0, apps::kExitGivenUp, 0}), 0);
    EXPECT_EQ(status_of(loss, {130, 137, 130}), 130);
    EXPECT_EQ(status_of(loss, {2, 2, 2}), 2);
    EXPECT_EQ(status_of(loss, {137, 137}), 137);
  }
  EXPECT_EQ(status_of(Loss::kIsSurvived, {137, 0, 0}), 0);
  EXPECT_EQ(status_of(Loss::kOfFirstEnds, {137, 1, 1}), 1);
  EXPECT_EQ(status_of(Loss::kOfFirstEnds, {0, 1, 0}), 0);
  EXPECT_EQ(status_of(Loss::kIsSurvived, {0, 1, 0}), 1);
  EXPECT_EQ(status_of(Loss::kEndsAll, {0, 0, 137}), 137);
}

TEST(Supervisor, KillsWhoeverIsLeftStandingWhenTheOthersAreThrough) {
  EXPECT_EQ(status_of(apps::Loss::kIsSurvived, {0, -1, 0}), 0);
  EXPECT_EQ(status_of(apps::Loss::kOfFirstEnds, {0, 0, -1}), 0);
  EXPECT_EQ(status_of(apps::Loss::kEndsAll, {1, 1, -1}), 1);
}

TEST(Supervisor, OrdersThatAPipeCannotHoldArriveWholeAndInOrder) {
  apps::Supervisor team;
  const std::string longer(300'000, 'x');
  apps::Ward& host = team.start("host", {.orders = true}, [&](size_t) {
    std::string all;
    char some[4096];
    for (ssize_t n; !all.ends_with("last\n") && (n = read(STDIN_FILENO, some, sizeof some)) > 0;)
      all.append(some, size_t(n));
    _exit(all == longer + "\nlast\n" ? 0 : 1);
  });
  host.order(longer);
  host.order("last");
  EXPECT_EQ(team.run(), 0);
}

}  // namespace
}  // namespace skein
