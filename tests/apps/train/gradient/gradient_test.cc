// How a batch becomes a gradient: which batch, in how many passes, and what the meters record.
#include "apps/train/gradient/gradient.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/communicator/world_of_one.h"
#include "tests/support/numbers/difference.h"
#include "tests/support/parts.h"

namespace skein::apps {
namespace {

// The parts that a gradient needs, at step k of a single worker.
struct Oracle {
  explicit Oracle(const Config& c, int64_t k = 0)
      : paper(alone, c, open_setup(c), ".", false),
        flat(nn::flatten(*paper.run.setup.model, allocator(kCpu))),
        gradient(paper.run, batches, traces, flat) {
    paper.run.k = k;
    batches.open();
  }
  std::vector<float> next(const optim::Slices& slices = {}) {
    loss = gradient.of_next_batch(slices).item();
    return {flat.g.data<float>(), flat.g.data<float>() + flat.g.size()};
  }
  comm::WorldOfOne alone;
  RunOnPaper paper;
  Traces traces{paper.run};
  Batches batches{paper.run};
  nn::Flat flat;
  Gradient gradient;
  float loss = 0;
};

TEST(Gradient, IsThatOfTheStepsOwnBatch) {
  const Config c = small_config();
  Oracle from_start(c), from_third(c, 2);
  const std::vector<float> first = from_start.next();
  from_start.paper.run.k = 1, from_start.next();
  from_start.paper.run.k = 2;
  const std::vector<float> third = from_start.next();
  EXPECT_NE(first, third);
  EXPECT_EQ(from_third.next(), third);
  EXPECT_EQ(from_third.loss, from_start.loss);
}

TEST(Gradient, AStepThatTakesNoneDropsItsBatch) {
  const Config c = small_config();
  Oracle always(c), once(c);
  for (Oracle* o : {&always, &once}) {
    if (o == &always) o->next();
    o->gradient.end_step();
    o->paper.run.k = 1;
  }
  EXPECT_EQ(once.next(), always.next());
}

TEST(Gradient, CutIntoPassesIsTheSame) {
  Config c = small_config();
  c.mixup = 0.4;
  Oracle whole(c);
  c.accumulate = 3;
  Oracle cut(c);
  const std::vector<float> g = whole.next();
  EXPECT_LT(differences::largest_difference(cut.next(), g), 1e-6f);
  EXPECT_NEAR(cut.loss, whole.loss, 1e-6f);
}

TEST(Gradient, OfScaledLossesIsUnscaledAgain) {
  Config c = small_config();
  Oracle plain(c);
  c.loss_scale = "1024";
  Oracle scaled(c);
  EXPECT_EQ(plain.gradient.scale(), nullptr);
  ASSERT_NE(scaled.gradient.scale(), nullptr);
  EXPECT_EQ(scaled.next(), plain.next());
}

TEST(Gradient, RecordedAndReplayedIsTheSameInSlicesToo) {
  Config c = small_config();
  c.slice_mb = 0.001;
  Oracle plain(c);
  c.cuda_graphs = "on";
  Oracle recorded(c);
  for (int64_t k = 0; k < 6; ++k) {
    plain.paper.run.k = recorded.paper.run.k = k;
    int64_t handed[2] = {0, 0};
    const std::vector<float> want = plain.next({[&](const Tensor& s) { handed[0] += s.size(); }, [] {}});
    EXPECT_EQ(recorded.next({[&](const Tensor& s) { handed[1] += s.size(); }, [] {}}), want) << k;
    EXPECT_EQ(handed[0], plain.flat.g.size());
    EXPECT_EQ(handed[1], handed[0]);
  }
  EXPECT_NE(recorded.gradient.graphs().describe(), "off");
}

TEST(Gradient, CountsTheImagesAndTheirLosses) {
  Oracle o(small_config());
  o.next();
  const float first = o.loss;
  o.paper.run.k = 1, o.next();
  ASSERT_TRUE(o.gradient.meters().read());
  EXPECT_EQ(o.gradient.meters().recent.images, 16);
  EXPECT_NEAR(o.gradient.meters().recent.mean_loss(), (first + o.loss) / 2, 1e-5);
}

TEST(Gradient, TakesTimeByKindOfWork) {
  Oracle o(small_config());
  o.next();
  const Seconds& s = o.paper.run.costs.seconds;
  EXPECT_GT(s.forward, 0);
  EXPECT_GT(s.backward, 0);
  EXPECT_GT(s.data, 0);
  EXPECT_EQ(s.update + s.peers, 0);
}

}  // namespace
}  // namespace skein::apps
