// Downpour, DynSGD and AGN: their traces to the digit, and where they are stable.
#include <cmath>
#include <numbers>

#include "tests/support/files.h"
#include "tests/support/servers.h"

namespace skein {
namespace {

using namespace trainee;

TEST(Downpour, FollowsItsTrace) {
  Driven d({.size = 1}, "downpour", {}, 2);
  const double theta[] = {.1, .3, .39, .56, .621, .765};
  for (int t = 0; t < 6; ++t) EXPECT_NEAR(d.step(t % 2), theta[t], 1e-6) << t;
}

TEST(ServerTrace, DynSgdDividesByStaleness) {
  Driven d({.size = 1}, "dynsgd", {}, 2);
  const int order[] = {0, 1, 1, 0};
  const double theta[] = {.1, .1 + .2 / 2, .2 + .18, .38 + .09 / 3};
  for (int t = 0; t < 4; ++t) EXPECT_NEAR(d.step(order[t]), theta[t], 1e-6) << t;
}

TEST(ServerTrace, ACommitIsOfTauSteps) {
  for (const auto& [row, share] : {std::pair("downpour", 1.0), {"agn", 0.5}, {"dynsgd", 1.0}}) {
    Driven d({.size = 1}, row, options({{"tau", "2"}}), 1);
    EXPECT_NEAR(d.step(0), .1, 1e-6) << row;
    EXPECT_NEAR(d.step(0), .19 * share, 1e-6) << row;
  }
}

// Commits come in the order of `who`; two of them make a step of the momentum.
TEST(DelayedNesterov, FollowsItsTrace) {
  const auto o = options({{"server-rule", "delayed-nesterov"},
                          {"server-lr", "1"},
                          {"server-momentum", "0.5"},
                          {"server-share", "0.25"}});
  Driven d({.size = 1}, "downpour", o, 2);
  const int who[] = {0, 1, 1, 0, 0, 1};
  const double theta[] = {.05, .20625, .3146875, .44175781, .49619336, .66231079};
  for (int t = 0; t < 6; ++t) EXPECT_NEAR(d.step(who[t]), theta[t], 1e-6) << t;
}

TEST(DelayedNesterov, TheCentersMomentumIsPartOfItsState) {
  const Problem p{.momentum = 0.9f, .noise = 1};
  const testing::ScratchDir folder;
  const auto with = [&](const char* how) {
    return options({{"tau", "2"}, {"server-rule", "delayed-nesterov"}, {how, folder / "order"}});
  };
  for (bool dedicated : {false, true}) {
    std::vector<optim::Snapshot> whole(3), part(3), parts(3);
    const Ending once = run(p, "downpour", with("record"), 3, dedicated, {0, 5, 12}, nullptr, &whole);
    run(p, "downpour", with("replay"), 3, dedicated, {0, 5}, nullptr, &part);
    EXPECT_EQ(run(p, "downpour", with("replay"), 3, !dedicated, {5, 12}, &part, &parts), once);
    EXPECT_TRUE(parts == whole);
    const auto& kept = std::get<Tensor>(whole[0].fields().at("strategy.center.kept"));
    EXPECT_EQ(kept.size(), 2 * p.size);
    EXPECT_GT(norm(kept), 0);
  }
}

TEST(DelayedNesterov, RefusesWhatItCannotDo) {
  const auto refused = [](std::initializer_list<std::pair<std::string, std::string>> flags) {
    EXPECT_THROW(optim::make_strategy("downpour", options(flags), 4), BadOption);
  };
  refused({{"server-rule", "nesterov"}});
  refused({{"server-lr", "1"}});  // of a sum
  refused({{"server-rule", "delayed-nesterov"}, {"server-buffer", "0"}});
  refused({{"server-rule", "delayed-nesterov"}, {"server-share", "0.3"}});  // more than a quarter
}

TEST(Downpour, IsStableExactlyBelowTheBound) {
  for (int n : {1, 4, 10, 30, 100}) {
    const double bound = 2 * std::sin(std::numbers::pi / (2 * (2 * n - 1)));
    EXPECT_LT(growth("downpour", n, 0.95 * bound), 0.7) << n;
    EXPECT_GT(growth("downpour", n, 1.05 * bound), 1.4) << n;
  }
}

}  // namespace
}  // namespace skein
