// --exact-every and --final-average over every gossip.
#include <cmath>
#include <fstream>

#include "comm/communicator/words.h"
#include "tests/support/files.h"
#include "tests/support/peek.h"
#include "tests/support/trainee.h"

namespace skein {
namespace {

using namespace trainee;

const char* kRows[] = {"d-psgd", "sgp", "osgp", "ad-psgd"};
const Problem kNoisy{.momentum = 0.9f, .noise = 1, .curvature_spread = 1, .start_spread = 1};

optim::Options exactly(const std::string& row, const std::string& every, const std::string& at_end) {
  optim::Options o = options({{"exact-every", every}, {"final-average", at_end}});
  if (row == "osgp") o.set("staleness", "2");
  return o;
}

TEST(ExactAverage, MakesAllModelsOneEverySoManySteps) {
  for (const std::string row : kRows) {
    const auto h = train(kNoisy, row, exactly(row, "3", "off"), 6, 8);
    for (int r = 1; r < 6; ++r) {
      EXPECT_EQ(h[3][size_t(r)], h[3][0]) << row;
      EXPECT_EQ(h[6][size_t(r)], h[6][0]) << row;
      EXPECT_NE(h[8][size_t(r)], h[8][0]) << row;
    }
  }
}

TEST(ExactAverage, IsTheMeanOfAllThereIs) {
  const Problem still{.zero_gradient = true, .start_spread = 1};
  for (const std::string row : kRows) {
    const auto h = train(still, row, exactly(row, "5", "off"), 6, 5);
    for (size_t i = 0; i < size_t(still.size); ++i) {
      double mean = 0;
      for (const auto& x : h[0]) mean += double(x[i]) / 6;
      EXPECT_NEAR(h[5][0][i], mean, 1e-5) << row;
    }
  }
}

TEST(ExactAverage, EndsWithOneModelUnlessToldNotTo) {
  for (const std::string row : kRows)
    for (const char* at_end : {"on", "off"}) {
      std::vector<std::vector<float>> before(4), models(4);
      in_local_world(4, [&](comm::Communicator& c) {
        Trainee t(kNoisy, row, exactly(row, "0", at_end), c);
        for (int64_t k = 0; k < 5; ++k) t.step(k);
        t.strategy->settle(
            t.worker);  // osgp's early workers gossip here until the last has come, and may agree
        before[size_t(c.rank())] = values(t.x);
        t.strategy->finish(t.worker);
        models[size_t(c.rank())] = values(t.x);
      });
      const bool on = at_end == std::string("on");
      for (size_t r = 0; r < 4; ++r) EXPECT_EQ(models[r], on ? models[0] : before[r]) << row;
    }
}

// X and w are both averaged where weights differ from one.
TEST(ExactAverage, OfUnequalWeightsIsStillTheMean) {
  const testing::ScratchDir folder;
  const std::string path = folder / "graph.json";
  std::ofstream(path)
      << R"({"n": 3, "rounds": [{"edges": [[0,0,0.25],[0,1,0.75],[1,1,0.5],[1,2,0.5],[2,2,0.9],
      [2,0,0.1]]}]})";
  for (const char* row : {"sgp", "osgp"})
    in_local_world(3, [&](comm::Communicator& c) {
      const Problem still{.zero_gradient = true, .start_spread = 1};
      Trainee t(still, row, options({{"topology", "file:" + path}, {"exact-every", "7"}}), c);
      for (int64_t k = 0; k < 6; ++k) t.step(k);
      EXPECT_GT(std::abs(Peek(*t.strategy).numbers.at("w") - 1), 0.01) << row;
      t.step(6);
      EXPECT_NEAR(Peek(*t.strategy).numbers.at("w"), 1, 1e-12) << row;
      EXPECT_NEAR(t.x.data<float>()[0], -2, 1e-5) << row;
    });
}

TEST(ExactAverage, WithAWorldOfOneIsThePlainRule) {
  for (const std::string row : kRows)
    EXPECT_EQ(train(kNoisy, row, exactly(row, "2", "on"), 1, 6), train(kNoisy, "sgd", {}, 1, 6)) << row;
}

TEST(ExactAverage, ResumesBitForBit) {
  for (const std::string row : {"d-psgd", "sgp", "osgp"})
    for (int64_t cut = 0; cut < 8; ++cut) {
      const auto o = options({{"exact-every", "3"}});
      std::vector<optim::Snapshot> states(4);
      std::vector<std::vector<float>> end(4);
      in_local_world(4, [&](comm::Communicator& c) {
        Trainee t(kNoisy, row, o, c);
        for (int64_t k = 0; k < cut; ++k) t.step(k);
        t.strategy->settle(t.worker);
        states[size_t(c.rank())].take([&](Archive& a) { t.visit(a); });
      });
      in_local_world(4, [&](comm::Communicator& c) {
        Trainee t(kNoisy, row, o, c);
        states[size_t(c.rank())].restore([&](Archive& a) { t.visit(a); });
        for (int64_t k = cut; k < 8; ++k) t.step(k);
        t.strategy->settle(t.worker);
        end[size_t(c.rank())] = values(t.x);
      });
      EXPECT_EQ(end, train(kNoisy, row, o, 4, 8).back()) << row << " cut at " << cut;
    }
}

TEST(ExactAverage, AStepThatFailsLeavesTheOneBeforeIt) {
  for (const char* row : {"d-psgd", "sgp"})
    in_local_world(3,
                   [&](comm::Communicator& c) {
                     Trainee t(kNoisy, row, options({{"exact-every", "2"}}), c);
                     const optim::Walk walk = [&](Archive& a) { t.visit(a); };
                     optim::Snapshot before, after;
                     t.step(0);
                     if (c.rank() == 0)
                       t.worker.oracle = [](const optim::Slices&) -> Tensor { throw Error("no data"); };
                     before.take(walk);
                     EXPECT_THROW(t.step(1), Error) << row;
                     after.take(walk);
                     EXPECT_EQ(before, after) << row;
                   },
                   {.deadline = 0.2});
}

// Asked to stop while others are ahead, at the step where an average is due: all meet, and
// the average is taken later.
TEST(ExactAverage, IsMadeUpForWhereAWorkerIsStoppedBeforeIt) {
  for (const std::string row : {"osgp", "ad-psgd"})
    for (int64_t behind : {1, 2, 4}) {
      std::vector<std::vector<float>> before(4), models(4);
      in_local_world(4, [&](comm::Communicator& c) {
        Trainee t(kNoisy, row, exactly(row, "4", "off"), c);
        int64_t k = 0;
        for (; k < (c.rank() == 1 ? 4 - behind : 4); ++k) t.step(k);
        for (bool together = false; !together;) {
          t.strategy->settle(t.worker);
          int64_t furthest = k;
          together = true;
          for (const auto& other : comm::gather_numbers(c, {double(k)})) {
            together = together && int64_t(other[0]) == k;
            furthest = std::max(furthest, int64_t(other[0]));
          }
          for (; k < furthest; ++k) t.step(k);
        }
        EXPECT_EQ(k, 4);
        models[size_t(c.rank())] = values(t.x);
      });
      // To rounding: waiting workers of osgp gossip on.
      for (int r = 1; r < 4; ++r)
        EXPECT_LT(largest_difference(models[size_t(r)], models[0]), 1e-5) << row << ' ' << behind;
    }
}

TEST(ExactAverage, RefusesAPeriodBelowZero) {
  EXPECT_THROW(optim::make_strategy("sgp", options({{"exact-every", "-1"}}), 2), BadOption);
}

}  // namespace
}  // namespace skein
