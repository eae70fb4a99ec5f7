// The loss scale: unscaling, judging, adjusting, skipping, and its state.
#include "engine/vectors/loss_scale.h"

#include <cmath>
#include <limits>

#include "engine/vectors/gem.h"
#include "optim/rule.h"
#include "optim/snapshot.h"
#include "tests/support/testing.h"

namespace skein {
namespace {

using testing::values;

constexpr float kInf = std::numeric_limits<float>::infinity();

class LossScales : public testing::OnDevice {
 protected:
  Device device() const { return GetParam(); }
  Tensor here(const std::vector<float>& v) const {
    return Tensor::of<float>({int64_t(v.size())}, v).to(device());
  }
  void judge(LossScale& s, float v) const { s.judge(here({1, v, 2})); }
  bool on(const LossScale& s) const {
    const Tensor x = here({1});
    sgd_update({.x = x, .v = {}, .g = here({1}), .at = x, .lr = 1.f, .on = s.on()});
    return values(x)[0] == 0;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, LossScales, testing::kDevices, testing::device_name);

TEST_P(LossScales, APowerOfTwoComesOutOfTheGradientExactly) {
  for (int64_t n : {1, 31, 8192, 8193, 100000}) {  // a block's length and more
    const Tensor g = testing::random_normal({n}, 5, 1e-3f).to(device()), scaled = g.clone();
    LossScale s(device(), true);
    scale(scaled, s.seed());
    s.judge(scaled);
    EXPECT_EQ(values(scaled), values(g)) << n;
    EXPECT_TRUE(on(s));
  }
}

TEST_P(LossScales, OneBadNumberAnywhereIsSeen) {
  for (int64_t n : {1, 40, 8192, 30000})
    for (int64_t at : {int64_t(0), n / 2, n - 1})
      for (float bad : {kInf, -kInf, NAN}) {
        std::vector<float> v(size_t(n), 1.f);
        v[size_t(at)] = bad;
        LossScale s(device(), true);
        s.judge(here(v));
        EXPECT_FALSE(on(s)) << bad << " at " << at << " of " << n;
        const LossScale::State state = s.read();
        EXPECT_EQ(state.scale, LossScale::kStart / 2);
        EXPECT_EQ(state.skipped, 1);
      }
}

TEST_P(LossScales, TheLargestFiniteNumberIsNoOverflow) {
  LossScale s(device(), false, 1);
  judge(s, std::numeric_limits<float>::max());
  EXPECT_TRUE(on(s));
}

TEST_P(LossScales, HalvesWithEveryOverflowDownToItsLeastAndSaysSo) {
  LossScale s(device(), true, 4);
  const double wanted[] = {2, 1, 1, 1};
  for (int i = 0; i < 4; ++i) {
    judge(s, kInf);
    EXPECT_EQ(s.read().scale, wanted[i]);
    EXPECT_EQ(s.read().skipped, i + 1);
    EXPECT_EQ(s.read().good, 0);
  }
  judge(s, 1);
  EXPECT_TRUE(on(s)) << "a step after an overflow is taken again";
}

TEST_P(LossScales, DoublesAfterSoManyGoodStepsInARowUpToItsMost) {
  LossScale s(device(), true, LossScale::kMost / 2);
  const int n = int(LossScale::kGoodSteps);
  for (int i = 0; i < n - 1; ++i) judge(s, 1);
  EXPECT_EQ(s.read().scale, LossScale::kMost / 2);
  EXPECT_EQ(s.read().good, n - 1);
  judge(s, NAN);  // restarts the count
  EXPECT_EQ(s.read().scale, LossScale::kMost / 4);
  for (double wanted : {LossScale::kMost / 4, LossScale::kMost / 2, LossScale::kMost, LossScale::kMost}) {
    EXPECT_EQ(s.read().scale, wanted);
    for (int i = 0; i < n; ++i) judge(s, 1);
    EXPECT_EQ(s.read().good, 0);
  }
}

// This holds also if the state is read so rarely, or so often, that the skipped steps in between say nothing.
TEST_P(LossScales, CountsWhatItSkipsInARowWithoutAWayDown) {
  LossScale moving(device(), true, 4), fixed(device(), false, 4);
  const auto both = [&](float v) { judge(moving, v), judge(fixed, v); };
  for (int i = 0; i < 5; ++i) both(kInf);
  EXPECT_EQ(moving.read().stuck, 3) << "two have halved it";
  EXPECT_EQ(fixed.read().stuck, 5);
  both(1);
  EXPECT_EQ(moving.read().stuck, 0);
  EXPECT_EQ(fixed.read().stuck, 0);
  both(NAN);
  EXPECT_EQ(moving.read().stuck, 1);
  EXPECT_EQ(moving.read().skipped, 6);
}

TEST_P(LossScales, SaysWhatItIsBeforeAnythingWasSent) {
  fill(Tensor({6}, kF32, pinned_allocator()), 12345.f);  // arbitrary contents
  LossScale s(device(), true, 64);
  EXPECT_EQ(s.take().scale, 64);
  EXPECT_EQ(s.take().skipped, 0);
  EXPECT_EQ(s.take().stuck, 0);
}

TEST_P(LossScales, AGivenNumberStaysAndStillSkips) {
  const auto s = make_loss_scale("1000", kF32, device());
  const Tensor g = here({3000, -500});
  s->judge(g);
  EXPECT_TRUE(testing::allclose(values(g), {3, -0.5}, 1e-6));
  judge(*s, kInf);
  EXPECT_FALSE(on(*s));
  for (int i = 0; i < int(LossScale::kGoodSteps) + 1; ++i) judge(*s, 1);
  EXPECT_EQ(s->read().scale, 1000);
  EXPECT_EQ(s->read().skipped, 1);
}

TEST_P(LossScales, BackwardStartsFromIt) {
  LossScale s(device(), true, 512);
  const Tensor x = here({1, 2, 3}), g = here({0, 0, 0});
  Tape tape;
  tape.watch(x, g);
  tape.backward(sum(square(x)), {}, s.seed());
  EXPECT_EQ(values(g), (std::vector<double>{1024, 2048, 3072}));
}

TEST_P(LossScales, SgdLeavesPointAndMomentumWhereItIsOff) {
  for (bool nesterov : {false, true}) {
    LossScale s(device(), true);
    const Tensor x = here({1, 2, 3});
    const auto rule = optim::sgd(
        x, {.momentum = 0.9f, .weight_decay = 0.1f, .nesterov = nesterov, .decayed = 3, .on = s.on()});
    rule->step(x, here({1, 1, 1}), 0.1f);
    optim::Snapshot before;
    const auto walk = [&](Archive& a) { rule->visit(a); };
    before.take(walk);
    const std::vector<double> point = values(x);
    const Tensor bad = here({kInf, NAN, 1});
    s.judge(bad);
    rule->step(x, bad, 0.1f);
    EXPECT_EQ(values(x), point);
    rule->step(x, here({1, 1, 1}), 0.1f);
    EXPECT_EQ(values(x), point) << "the flag is that of the gradient judged last";
    judge(s, 1);
    rule->step(x, here({1, 1, 1}), 0.1f);
    const std::vector<double> with = values(x);
    before.restore(walk);  // the momentum is as before, so the same step from the same point follows
    const Tensor again = x.clone();
    copy(again, here({float(point[0]), float(point[1]), float(point[2])}));
    rule->step(again, here({1, 1, 1}), again, 0.1f);
    EXPECT_EQ(values(again), with);
  }
}

TEST_P(LossScales, GemOnlyPullsWhereItIsOff) {
  LossScale s(device(), true);
  const Tensor bad = here({NAN, 1, kInf});
  s.judge(bad);
  const auto three = [&](float v) { return here({v, v, v}); };
  const Tensor x = three(1), m = three(2), old = three(3), u = three(4), pi = three(5), theta = three(6);
  gem_update({.x = x,
              .m = m,
              .s = old,
              .u = u,
              .pi = pi,
              .g = bad,
              .theta = theta,
              .lr = 0.1f,
              .mu = 0.9f,
              .on = s.on()});
  const auto all = [](double v) { return std::vector<double>{v, v, v}; };
  EXPECT_EQ(values(m), all(2));
  EXPECT_EQ(values(u), all(0));
  EXPECT_EQ(values(pi), all(0));
  EXPECT_EQ(values(old), all(6));
  EXPECT_EQ(values(x), all(6));
}

TEST_P(LossScales, ItsStateComesBackWhole) {
  LossScale s(device(), true, 64);
  optim::Snapshot kept;
  const auto walk = [&](Archive& a) { s.visit(a); };
  judge(s, kInf);
  for (int i = 0; i < 7; ++i) judge(s, 1);
  kept.take(walk);
  for (int i = 0; i < 3; ++i) judge(s, kInf);
  kept.restore(walk);
  EXPECT_EQ(s.take().scale, 32);
  EXPECT_EQ(s.read().scale, 32);
  EXPECT_EQ(s.read().good, 7);
  EXPECT_EQ(s.read().skipped, 1);
  const Tensor g = here({64});
  s.judge(g);
  EXPECT_EQ(values(g)[0], 2) << "what it divides by is of the restored scale";
}

TEST(LossScaleWords, SayWhatIsScaled) {
  const auto make = [](const char* word, DType t) { return make_loss_scale(word, t, kCpu); };
  EXPECT_EQ(make("auto", kF32), nullptr);
  EXPECT_EQ(make("auto", kBF16), nullptr);
  ASSERT_NE(make("auto", kF16), nullptr);
  EXPECT_EQ(make("auto", kF16)->read().scale, LossScale::kStart);
  EXPECT_EQ(make("none", kF16), nullptr);
  ASSERT_NE(make("dynamic", kF32), nullptr);
  EXPECT_EQ(make("128.5", kBF16)->read().scale, 128.5);
  for (const char* word : {"-1", "0", "0.5", "16777300", "1e30", "nan", "inf", "12x", "", "Auto"}) {
    try {
      make(word, kF16);
      ADD_FAILURE() << word << " was taken";
    } catch (const BadOption& e) {
      EXPECT_NE(std::string(e.what()).find(text("--loss-scale ", word, ": allowed are auto")),
                std::string::npos)
          << e.what();
    }
  }
}

}  // namespace
}  // namespace skein
