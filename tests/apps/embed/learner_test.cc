// Workers that learn from a program's own batches end with one model.
#include "apps/embed/learner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/random.h"
#include "engine/vectors/vec.h"
#include "nn/models.h"
#include "tests/support/world.h"

namespace skein {
namespace {

constexpr int64_t kRows = 16;

// Rows [first, last) of a batch of images whose brightness shows the label.
std::pair<Tensor, Tensor> batch(int64_t step, int64_t first, int64_t last) {
  const Tensor images({kRows, 6, 6, 1}), labels({kRows}, kI32);
  fill_normal(images, {.seed = 11, .step = uint64_t(step)}, 0, 0.3f);
  for (int64_t i = 0; i < kRows; ++i) {
    labels.data<int32_t>()[i] = int32_t(i % 4);
    for (int64_t p = 0; p < 36; ++p) images.data<float>()[i * 36 + p] += float(i % 4) - 1.5f;
  }
  return {images.view({last - first, 6, 6, 1}, first * 36), labels.view({last - first}, first)};
}

struct Learned {
  float first = 0, last = 0;  // losses
  double apart = 0;
  std::vector<float> x;
};

// n workers take 20 steps, each on its part of every batch.
std::vector<Learned> learn(int n, const LearnerOptions& o) {
  std::vector<Learned> all(static_cast<size_t>(n));
  comm::in_local_world(n, [&](comm::Communicator& comm) {
    Learner learner(nn::make_model("mlp", {6, 6, 1, 4}), comm, o);
    Learned& mine = all[size_t(comm.rank())];
    for (int64_t k = 0; k < 20; ++k) {
      const int64_t rows = kRows / n;
      const auto [images, labels] = batch(k, comm.rank() * rows, (comm.rank() + 1) * rows);
      mine.last = learner.step(images, labels).item();
      if (k == 0) mine.first = mine.last;
    }
    mine.apart = learner.finish();
    const Tensor x = learner.parameters();
    mine.x = {x.data<float>(), x.data<float>() + x.size()};
  });
  return all;
}

TEST(Learner, WorkersLearnAndEndWithOneModel) {
  for (const char* algorithm : {"sgp", "local-sgd", "allreduce"}) {
    const std::vector<Learned> all = learn(2, {.algorithm = algorithm, .lr = 0.05f});
    EXPECT_LT(all[0].last, all[0].first / 2) << algorithm;
    EXPECT_EQ(all[0].x, all[1].x) << algorithm;
  }
}

// Two halves of a batch count like the whole, in slices and in one piece.
TEST(Learner, TwoWorkersByAllReduceAreOneWithTheWholeBatch) {
  const std::vector<Learned> two = learn(2, {.algorithm = "allreduce", .lr = 0.05f}),
                             one = learn(1, {.algorithm = "allreduce", .lr = 0.05f});
  ASSERT_EQ(two[0].x.size(), one[0].x.size());
  for (size_t i = 0; i < one[0].x.size(); ++i) EXPECT_NEAR(two[0].x[i], one[0].x[i], 1e-4f) << i;
  EXPECT_NEAR(two[0].apart, 0, 1e-9);
}

TEST(Learner, GradientsAreClippedWhetherAloneOrNot) {
  LearnerOptions o{.algorithm = "allreduce", .lr = 1, .momentum = 0, .nesterov = false};
  o.flags.set("clip-norm", "0.001");
  for (const int n : {1, 2}) {
    const std::vector<Learned> all = learn(n, o);
    double moved = 0;
    const std::vector<Learned> start = learn(n, {.algorithm = "allreduce", .lr = 0});
    for (size_t i = 0; i < all[0].x.size(); ++i) moved += std::pow(all[0].x[i] - start[0].x[i], 2);
    EXPECT_LE(std::sqrt(moved), 20 * 0.001 * 1.001) << n;
    EXPECT_GT(moved, 0) << n;
  }
}

// Its step begins with an update of the parameters, which is taken back.
TEST(Learner, ALostPeerLeavesTheParametersOfTheLastWholeStep) {
  auto world = comm::local_world(2);
  comm::in_world(world, [&](comm::Communicator& c) {
    LearnerOptions o{.algorithm = "local-sgd", .lr = 0.05f};
    o.flags.set("tau", "1");
    Learner learner(nn::make_model("mlp", {6, 6, 1, 4}), c, o);
    const auto step = [&](int64_t k) {
      const auto [images, labels] = batch(k, c.rank() * kRows / 2, (c.rank() + 1) * kRows / 2);
      learner.step(images, labels);
    };
    for (int64_t k = 0; k < 3; ++k) step(k);
    c.barrier();
    if (c.rank() == 1) return world[0]->mailbox().lose(1, "its process has ended", true);
    const Tensor before = learner.parameters().clone();
    EXPECT_THROW(step(3), comm::PeerLost);
    EXPECT_EQ(std::memcmp(learner.parameters().raw(), before.raw(), size_t(before.bytes())), 0);
  });
}

}  // namespace
}  // namespace skein
