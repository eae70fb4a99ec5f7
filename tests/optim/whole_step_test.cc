// A step is done as a whole or not at all, and the last few can be taken back.
#include "optim/whole_step.h"

#include <gtest/gtest.h>

#include "tests/support/trainee.h"

namespace skein::optim {
namespace {

// A state of one field of each kind, in its step `k`.
struct Held {
  Tensor x = Tensor::zeros({3});
  int64_t k = 0;
  double w = 0;
  std::string word = "0";
  int visits = 0;

  Walk walk() {
    return [this](Archive& a) {
      ++visits;
      a("x", x), a("k", k), a("w", w), a("word", word);
    };
  }
  void advance() { fill(x, float(++k)), w = double(k), word = std::to_string(k); }
  bool is(int64_t step) const {
    return trainee::values(x) == std::vector<float>(3, float(step)) && k == step && w == double(step) &&
           word == std::to_string(step);
  }
};

TEST(WholeStep, AStepThatThrowsIsTakenBackAndTheErrorGoesOn) {
  Held s;
  WholeStep steps(1, s.walk());
  steps.run(0, [&] { s.advance(); });
  EXPECT_TRUE(s.is(1));
  try {
    steps.run(1, [&] {
      s.advance();
      throw Error("half-way");
    });
    ADD_FAILURE() << "the error is lost";
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "half-way"); }
  EXPECT_TRUE(s.is(1));
  steps.run(1, [&] { s.advance(); });
  EXPECT_TRUE(s.is(2));
}

TEST(WholeStep, GoesBackAsManyStepsAsItKeepsStates) {
  for (const int kept : {1, 2, 4})
    for (int back = 0; back < kept; ++back) {
      Held s;
      WholeStep steps(kept, s.walk());
      for (int64_t k = 0; k < 7; ++k) steps.run(k, [&] { s.advance(); });
      for (int64_t k = 0; k < 9; ++k) EXPECT_EQ(steps.knows(k), k < 7 && k >= 7 - kept) << kept << ' ' << k;
      steps.go_back(6 - back);
      EXPECT_TRUE(s.is(6 - back)) << kept << ' ' << back;
      EXPECT_THROW(steps.go_back(6 - kept), Error);
    }
}

TEST(WholeStep, RemembersAStateBetweenTwoSteps) {
  Held s;
  WholeStep steps(2, s.walk());
  steps.run(0, [&] { s.advance(); });
  steps.remember(1);
  s.advance();
  steps.go_back(1);
  EXPECT_TRUE(s.is(1));
  steps.go_back(0);
  EXPECT_TRUE(s.is(0));
}

TEST(WholeStep, TakesBackWhatIsDoneBeforeAStepWithTheStep) {
  Held s;
  WholeStep steps(2, s.walk());
  steps.run(0, [&] { s.advance(); });
  steps.run(1, [&] { s.advance(); });
  EXPECT_THROW(steps.run(1, [&] { throw Error("half-way"); }), Error);
  EXPECT_TRUE(s.is(1));
  steps.go_back(0);
  EXPECT_FALSE(steps.knows(1)) << "it is to come again";
}

TEST(WholeStep, CopiesTheStateOnceAStep) {
  Held s;
  WholeStep steps(4, s.walk());
  for (int64_t k = 0; k < 10; ++k) steps.run(k, [&] { s.advance(); });
  EXPECT_EQ(s.visits, 10);
}

TEST(WholeStep, AWorldOfOneCopiesNothing) {
  for (const StrategyRow& row : strategies()) EXPECT_EQ(states_kept(row, 1), 0) << row.name;
  Held s;
  WholeStep steps(states_kept(strategy_row("sgd"), 1), s.walk());
  steps.run(0, [&] { s.advance(); });
  const auto half = [&] {
    s.advance();
    throw Error("half-way");
  };
  EXPECT_THROW(steps.run(1, half), Error);
  steps.remember(1);
  EXPECT_FALSE(steps.knows(1));
  EXPECT_EQ(s.visits, 0);
  EXPECT_TRUE(s.is(2));
}

TEST(WholeStep, AsManyStatesAreKeptAsWorkersCanBeApart) {
  for (const StrategyRow& row : strategies()) {
    EXPECT_EQ(states_kept(row, 2), row.asynchronous() ? 0 : 1) << row.name;
    EXPECT_LE(states_kept(row, 8), row.asynchronous() ? 0 : 4) << row.name;
  }
  EXPECT_EQ(states_kept(strategy_row("allreduce"), 3), 2);
  for (const char* some : {"sgp", "d-psgd", "local-sgd", "post-local", "streaming-diloco"})
    EXPECT_EQ(states_kept(strategy_row(some), 3), 4) << some;
}

}  // namespace
}  // namespace skein::optim
