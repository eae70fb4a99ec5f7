// PushSum: shares that are given away and come back leave the model as it was.
#include "optim/gossip/push_sum.h"

#include "engine/vectors/vec.h"
#include "tests/support/trainee.h"

namespace skein::optim {
namespace {

using namespace trainee;

TEST(PushSum, AShareThatComesBackLeavesModelAndBuffersAsTheyWere) {
  for (const bool mixes : {false, true}) {
    Trainee t({.start_spread = 1}, "sgd", {});
    fill(t.x, 3.f), fill(t.buffers, 5.f);
    PushSum sum;
    sum.start(t.worker, mixes);
    EXPECT_EQ(sum.all().size(), t.x.size() + (mixes ? t.buffers.size() : 0));
    const Tensor share = sum.all().clone();
    scale(share, 0.75f), scale(sum.all(), 0.25f), sum.keep(0.25);
    fill(t.x, 0.f);
    sum.show(t.worker);  // z does not depend on how much is here
    EXPECT_EQ(values(t.x), std::vector<float>(size_t(t.x.size()), 3.f));
    sum.add({share}, {0.75});
    EXPECT_EQ(sum.w(), 1);
    fill(t.x, 0.f);
    sum.show(t.worker);
    EXPECT_EQ(values(t.x), std::vector<float>(size_t(t.x.size()), 3.f));
    sum.give_buffers(t.worker);
    EXPECT_EQ(values(t.buffers), std::vector<float>(3, 5.f));
  }
}

TEST(PushSum, TheBuffersOfAForwardPassTravelInProportionToW) {
  Trainee t({}, "sgd", {});
  PushSum sum;
  sum.start(t.worker, true);
  sum.keep(0.5);
  fill(t.buffers, 8.f);
  sum.take_buffers(t.worker);
  EXPECT_EQ(values(sum.all()).back(), 4);
  sum.give_buffers(t.worker);
  EXPECT_EQ(values(t.buffers), std::vector<float>(3, 8.f));
}

}  // namespace
}  // namespace skein::optim
