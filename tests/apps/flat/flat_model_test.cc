// Quadratics against algebra, and ghosts against the models that they stand for.
#include "apps/flat/flat_model.h"

#include <cmath>

#include "apps/flat/quadratic.h"
#include "engine/vectors/vec.h"
#include "tests/support/program.h"

namespace skein::apps {
namespace {

using Kind = GradientPlan::Kind;

Tensor some_point(int64_t d) {
  Tensor x({d});
  for (int64_t i = 0; i < d; ++i) x.data<float>()[i] = std::sin(float(i));
  return x;
}

TEST(Quadratic, ItsGradientIsTheDerivativeOfItsLoss) {
  const GradientPlan plan{.kind = Kind::kQuadratic, .dimension = 50, .condition = 20};
  const Quadratic q(plan, 1, 0, 4);
  const Tensor x = some_point(50), g({50});
  q.gradient(g, x, 0);
  for (int64_t i : {0, 17, 49}) {
    const float h = 1e-2f;
    Tensor up = x.clone(), down = x.clone();
    up.data<float>()[i] += h, down.data<float>()[i] -= h;
    EXPECT_NEAR(g.data<float>()[i], (q.loss(up) - q.loss(down)) / (2 * h), 1e-4);
  }
  Tensor best({50});
  fill(best, 1 / std::sqrt(50.0));
  EXPECT_NEAR(q.loss(best), 0, 1e-12);
  EXPECT_NEAR(q.distance(Tensor::zeros({50})), 1, 1e-6);
}

// All workers' gradients have the mean of the loss's own, each is zeta from it, and noise has its
// length on average.
TEST(Quadratic, WorkersDifferByZetaAndByNoise) {
  for (const int n : {4, 5}) {
    GradientPlan plan{.kind = Kind::kQuadratic, .dimension = 400, .zeta = 0.5};
    const Tensor x = some_point(400), own({400}), g({400}), sum = Tensor::zeros({400});
    Quadratic({.dimension = 400}, 1, 0, n).gradient(own, x, 0);
    for (int r = 0; r < n; ++r) {
      Quadratic(plan, 1, r, n).gradient(g, x, 3);
      axpy(sum, 1.f / float(n), g);
      axpy(g, -1.f, own);
      EXPECT_NEAR(norm(g), r == 4 ? 0 : 0.5, 1e-5);
    }
    axpy(sum, -1.f, own);
    EXPECT_NEAR(norm(sum), 0, 1e-5) << n;
  }
  const GradientPlan noisy{.kind = Kind::kQuadratic, .dimension = 400, .noise = 2};
  const Quadratic q(noisy, 1, 1, 2), still({.dimension = 400}, 1, 1, 2);
  const Tensor x = some_point(400), a({400}), b({400}), own({400});
  still.gradient(own, x, 0);
  q.gradient(a, x, 0), q.gradient(b, x, 1);
  axpy(a, -1.f, own), axpy(b, -1.f, own);
  EXPECT_NEAR(norm(a), 2, 0.3);
  EXPECT_LT(std::abs(dot(a, b)), 1);  // 4 if they were the same
}

TEST(FlatModel, OfAGhostHasTheSizeAndTheTensorsOfItsModel) {
  Config c;
  c.model = "resnet50";
  c.workers = 1000;
  const FlatModel m = flat_model(c, {.kind = Kind::kGhost, .classes = 1000});
  EXPECT_EQ(m.parameters, 25557032);
  EXPECT_EQ(m.ends.size(), 161u);
  EXPECT_EQ(m.ends.back(), m.elements);
  EXPECT_LE(m.elements, 256);
  EXPECT_NEAR(double(m.elements) * m.stands_for, 25557032, 1);
}

// All of the vector once, from the end to the front, in slices of the length asked for but the last.
TEST(FlatModel, BackwardGivesAllOfTheVectorFromItsEnd) {
  Config c;
  c.model = "resnet50";
  const FlatModel m = flat_model(c, {.kind = Kind::kGhost});
  for (const double least : {0.0, 42.0, 1e9}) {
    int64_t end = m.elements;
    double share = 0;
    const auto parts = m.backward(least);
    for (const FlatPart& p : parts) {
      EXPECT_EQ(p.end, end);
      if (p.begin > 0) { EXPECT_GE(double(p.end - p.begin), least); }
      end = p.begin, share += p.share;
    }
    EXPECT_EQ(end, 0);
    EXPECT_NEAR(share, 1, 1e-9);
    EXPECT_EQ(parts.size(), least == 0 ? 161u : least == 1e9 ? 1u : parts.size());
  }
}

}  // namespace
}  // namespace skein::apps
