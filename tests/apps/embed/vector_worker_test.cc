// Workers whose gradients come from the program: every algorithm, over memory that the program owns.
#include "apps/embed/vector_worker.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/vectors/vec.h"
#include "tests/support/strategy_cases.h"
#include "tests/support/world.h"

namespace skein {
namespace {

constexpr int64_t kNumbers = 13;  // no multiple of any vector's width

// Memory of the test's own, which no allocator knows.
Tensor over(std::vector<float>& v) {
  return Tensor({int64_t(v.size())}, kF32,
                std::make_shared<Storage>(v.data(), int64_t(v.size() * sizeof(float)), kCpu, nullptr));
}

// The worker's loss is |x - target|^2 / 2, and the targets' mean is where all should arrive.
struct Bowl {
  Bowl(comm::Communicator& c, const WorkerOptions& o) : x(kNumbers, 1.f), worker({.x = over(x)}, c, o) {
    for (int64_t i = 0; i < kNumbers; ++i) target.push_back(float(i) + float(c.rank()));
  }
  Tensor gradient(const optim::Slices& slices) const {
    float* g = worker.gradient().data<float>();
    float loss = 0;
    for (size_t i = 0; i < x.size(); ++i) g[i] = x[i] - target[i], loss += g[i] * g[i] / 2;
    if (slices) slices.ready(worker.gradient()), slices.complete();
    return Tensor::of<float>({1}, {loss});
  }
  float step() {
    return worker.step([&](const optim::Slices& s) { return gradient(s); }).item();
  }
  std::vector<float> x, target;
  VectorWorker worker;
};

// Asynchronous workers may be ahead of each other, so where they arrive is a little to one side of the mean.
void expect_arrival(const std::string& row, const optim::Options& flags) {
  comm::in_local_world(2, [&](comm::Communicator& c) {
    Bowl b(c, {.algorithm = row, .lr = 0.05f, .momentum = 0, .nesterov = false, .flags = flags});
    for (int k = 0; k < 300; ++k) b.step();
    b.worker.show_model();
    const std::vector<float> shown = b.x;
    b.worker.hide_model();
    b.worker.finish();
    for (size_t i = 0; i < b.x.size(); ++i) {
      EXPECT_NEAR(b.x[i], double(i) + 0.5, 0.6) << row;
      EXPECT_NEAR(shown[i], double(i) + 0.5, 0.6) << row;
    }
  });
}

TEST(VectorWorker, ArrivesAtTheMeanOfTheTargetsByEveryRow) {
  for (const trainee::Case& one : trainee::cases(2)) expect_arrival(one.row->name, one.options);
  for (const optim::StrategyRow& row : optim::strategies())
    if (row.center()) expect_arrival(row.name, {});
}

// A gradient that the oracle hands out in two slices, in one, or leaves to the worker.
TEST(VectorWorker, SumsTheGradientHoweverItIsHandedOut) {
  std::vector<std::vector<float>> ends;
  for (const int slices : {0, 1, 2}) {
    std::vector<float> end;
    comm::in_local_world(2, [&](comm::Communicator& c) {
      Bowl b(c, {.algorithm = "allreduce", .lr = 0.1f});
      for (int k = 0; k < 5; ++k)
        b.worker.step([&](const optim::Slices& s) {
          const Tensor loss = b.gradient({}), g = b.worker.gradient();
          for (int i = 0; i < slices; ++i)
            s.ready(g.view({kNumbers * (i + 1) / slices - kNumbers * i / slices}, kNumbers * i / slices));
          return loss;
        });
      if (c.rank() == 1) end = b.x;
      EXPECT_EQ(b.worker.finish(), 0) << slices;
    });
    ends.push_back(end);
  }
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_EQ(ends[0], ends[2]);
  comm::in_local_world(2, [](comm::Communicator& c) {
    Bowl b(c, {.algorithm = "allreduce"});
    EXPECT_THROW(b.worker.step([&](const optim::Slices& s) {
      s.ready(b.worker.gradient().view({kNumbers - 1}));
      return b.gradient({});
    }),
                 Error)
        << "a slice is missing";
  });
}

TEST(VectorWorker, HidesTheModelAgain) {
  comm::in_local_world(2, [](comm::Communicator& c) {
    Bowl b(c, {.algorithm = "local-sgd", .lr = 0.1f});
    for (int k = 0; k < 2; ++k) b.step();  // tau is 4: they are apart
    const std::vector<float> own = b.x;
    b.worker.show_model();
    EXPECT_NE(b.x, own);
    EXPECT_THROW(b.worker.settle(), Error);  // a checkpoint would have the model in x's place
    b.worker.hide_model();
    EXPECT_EQ(b.x, own);
    EXPECT_EQ(b.worker.steps(), 2);
    EXPECT_GT(b.worker.finish(), 0);
  });
}

TEST(VectorWorker, AStepWhoseOracleThrowsIsNone) {
  comm::in_local_world(2, [](comm::Communicator& c) {
    Bowl b(c, {.algorithm = "local-sgd"});
    b.step();
    const std::vector<float> before = b.x;
    EXPECT_THROW(b.worker.step([&](const optim::Slices&) -> Tensor {
      b.x[0] = 99;
      throw Error("no gradient today");
    }),
                 Error);
    EXPECT_EQ(b.x, before);
    EXPECT_EQ(b.worker.steps(), 1);
  });
}

}  // namespace
}  // namespace skein
