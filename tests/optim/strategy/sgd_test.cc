// The strategy of one worker: the rule alone.
#include <gtest/gtest.h>

#include "comm/communicator/world_of_one.h"
#include "engine/random.h"
#include "optim/strategy.h"

namespace skein::optim {
namespace {

constexpr int64_t kSize = 1000;

Tensor random(uint64_t step, int64_t n = kSize) {
  Tensor t({n});
  fill_normal(t, {.seed = 7, .purpose = Purpose::kTest, .step = step}, 0, 1);
  return t;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const BadOption& e) { return e.what(); }
  return "nothing was thrown";
}

TEST(SgdStrategy, IsTheRuleAndItsLossIsPassedOn) {
  Tensor x = random(0), y = x.clone();
  const auto rule = sgd(x, {.momentum = 0.9f}), alone = sgd(y, {.momentum = 0.9f});
  comm::WorldOfOne peers;
  Worker me{
      .x = x, .g = Tensor({kSize}), .buffers = {}, .rule = *rule, .lr = 0.1f, .comm = peers, .oracle = {}};
  me.oracle = [&](const Slices&) {
    copy(me.g, random(5));
    return Tensor::of<float>({1}, {2.5f});
  };
  const auto strategy = make_strategy("sgd", {}, 1);
  strategy->start(me);
  EXPECT_EQ(strategy->iterate(me, 0).item(), 2.5f);
  strategy->finish(me);
  alone->step(y, random(5), 0.1f);
  EXPECT_EQ(0, memcmp(x.raw(), y.raw(), size_t(x.bytes())));
}

TEST(SgdStrategy, RefusesCompany) {
  const std::string m = message_of([] { make_strategy("sgd", {}, 4); });
  EXPECT_NE(m.find("--workers 4"), std::string::npos) << m;
  EXPECT_NE(m.find("--workers 1"), std::string::npos) << m;
}

}  // namespace
}  // namespace skein::optim
