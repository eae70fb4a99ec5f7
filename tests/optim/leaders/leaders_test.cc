// Leaders: windows of losses, elections, groups, and pulls.
#include "optim/leaders/leaders.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "optim/snapshot.h"
#include "tests/support/trainee.h"

namespace skein::optim {
namespace {

using trainee::values;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor number(double v) { return Tensor::of<float>({1}, {float(v)}); }

TEST(LossWindow, IsTheMeanOfWhatWasSeenOfTheLast) {
  LossWindow w(4);
  EXPECT_EQ(w.mean(), kInf);
  std::vector<double> means;
  for (float loss : {2.f, 1.6f, 1.2f, 1.f, .9f, .8f}) w.see(number(loss)), means.push_back(w.mean());
  const std::vector<double> expected = {2, 1.8, 1.6, 1.45, 1.175, .975};
  for (size_t i = 0; i < means.size(); ++i) EXPECT_NEAR(means[i], expected[i], 1e-7) << i;
}

TEST(LossWindow, ANanStaysAsLongAsItIsInTheWindow) {
  LossWindow w(2);
  w.see(number(1)), w.see(number(kNan));
  EXPECT_TRUE(std::isnan(w.mean()));
  w.see(number(3)), w.see(number(5));
  EXPECT_EQ(w.mean(), 4);
}

TEST(LossWindow, IsTheSameAfterARestore) {
  LossWindow a(3), b(3);
  for (float loss : {.1f, .2f, .3f, .4f}) a.see(number(loss));
  Snapshot s;
  s.take([&](Archive& ar) { a.visit(ar); });
  s.restore([&](Archive& ar) { b.visit(ar); });
  for (float loss : {.7f, .9f}) {
    EXPECT_EQ(a.mean(), b.mean());
    a.see(number(loss)), b.see(number(loss));
  }
  EXPECT_EQ(a.mean(), b.mean());
}

TEST(Elect, TheSmallestFiniteLossWins) {
  EXPECT_EQ(elect({3, 1, 2}), 1);
  EXPECT_EQ(elect({kNan, 5, kInf}), 1);
  EXPECT_EQ(elect({-kInf, 5, -7}), 2);
}
TEST(Elect, OfEqualsTheLowestRank) {
  EXPECT_EQ(elect({2, 1, 1, 1}), 1);
  EXPECT_EQ(elect({0, 0, 0}), 0);
}
TEST(Elect, NobodyWhereNoLossIsFinite) {
  EXPECT_EQ(elect({kNan, kNan}), -1);
  EXPECT_EQ(elect({kInf, kNan, -kInf}), -1);
  EXPECT_EQ(elect({}), -1);
}

TEST(SplitGroups, AsEvenlyAsItGoes) {
  using Groups = std::vector<std::vector<int>>;
  EXPECT_EQ(split_groups(4, 2), (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(split_groups(5, 2), (Groups{{0, 1, 2}, {3, 4}}));
  EXPECT_EQ(split_groups(7, 3), (Groups{{0, 1, 2}, {3, 4}, {5, 6}}));
  EXPECT_EQ(split_groups(3, 3), (Groups{{0}, {1}, {2}}));
  EXPECT_THROW(split_groups(3, 4), BadOption);
  EXPECT_THROW(split_groups(3, -1), BadOption);
}

// A world in which ranks 0 and 2 are on one host, 1 and 3 on another.
class TwoHosts final : public comm::Transport {
 public:
  explicit TwoHosts(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}
  comm::Rank rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  comm::Endpoint& to(comm::Rank r) override { return inner_->to(r); }
  comm::Mailbox& mailbox() override { return inner_->mailbox(); }
  void wait(const comm::Key& k, comm::Clock::time_point until) override { inner_->wait(k, until); }
  int host(comm::Rank r) override { return r % 2; }

 private:
  std::unique_ptr<Transport> inner_;
};

TEST(SplitGroups, OnePerHostByDefault) {
  auto world = comm::local_world(4);
  comm::Communicator one_host(*world[0]);
  EXPECT_EQ(split_by_host(4, one_host).size(), 1u);
  TwoHosts hosts(std::move(world[1]));
  comm::Communicator comm(hosts);
  EXPECT_EQ(split_by_host(4, comm), (std::vector<std::vector<int>>{{0, 2}, {1, 3}}));
}

TEST(Leader, IsAFixedPointOfItsPullAndTheOthersComeNearer) {
  comm::in_local_world(3, [](comm::Communicator& c) {
    // Values at which (1-c) x + c x is not x, and a negative zero.
    const Tensor x = Tensor::of<float>({4}, {0.1f + float(c.rank()), 1.f / 3, -0.f, 1e-40f});
    const std::vector<float> before = values(x);
    const Tensor buffers = Tensor::of<float>({1}, {float(c.rank())});
    const auto rule = sgd(x, {});
    Worker me{x, x, buffers, *rule, 0.1, c, 1, {}};
    Leader leader(c, me, 0.1, 0, true);
    ASSERT_TRUE(leader.pull(me, {3, 1, 2}));
    for (size_t i = 0; i < 4; ++i) {
      const float z = i == 0 ? 1.1f : before[i];
      EXPECT_NEAR(x.data<float>()[i], before[i] + 0.1f * (z - before[i]), 1e-7);
    }
    const bool same_bits = memcmp(x.raw(), before.data(), 16) == 0;
    EXPECT_EQ(same_bits, c.rank() == 1);
    EXPECT_NEAR(buffers.item(), c.rank() + 0.1 * (1 - c.rank()), 1e-7);
  });
}

TEST(Leader, NobodyElectedMovesNobody) {
  comm::in_local_world(2, [](comm::Communicator& c) {
    const Tensor x = Tensor::of<float>({1}, {float(c.rank())});
    const auto rule = sgd(x, {});
    Worker me{x, x, {}, *rule, 0.1, c, 1, {}};
    Leader leader(c, me, 0.5, 0, false);
    EXPECT_FALSE(leader.pull(me, {kNan, kInf}));
    EXPECT_EQ(x.item(), float(c.rank()));
  });
}

TEST(Leader, ProximallyPullsToTheLastLeaderAtFirstToTheStart) {
  const Tensor x = Tensor::of<float>({1}, {1});
  const auto rule = sgd(x, {});
  comm::WorldOfOne alone;
  Worker me{x, x, {}, *rule, 0.1, alone, 1, {}};
  Leader leader(alone, me, 0.5, 0.25, false);
  fill(x, 5.f);
  leader.pull_proximally(me);
  EXPECT_EQ(x.item(), 4);  // a quarter of the way to 1
  ASSERT_TRUE(leader.pull(me, {0}));
  fill(x, 8.f);
  leader.pull_proximally(me);
  EXPECT_EQ(x.item(), 7);
}

}  // namespace
}  // namespace skein::optim
