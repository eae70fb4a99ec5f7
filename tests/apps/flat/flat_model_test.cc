// Quadratics against algebra, and ghosts against the models that they stand for.
#include "apps/flat/flat_model.h"

#include <cmath>

#include "apps/flat/quadratic.h"
#include "engine/vectors/vec.h"
#include "nn/models.h"
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
  EXPECT_EQ(m.parts.size(), 161u);
  EXPECT_LE(m.elements, 256);
  EXPECT_NEAR(double(m.elements) * m.stands_for, 25557032, 3000);  // as its vector, each tensor is padded
}

// A ghost hands out what the model does, after the same tensors: all of the vector once.
TEST(FlatModel, GhostsHaveTheSlicesOfTheirModels) {
  for (const char* name : {"resnet20", "small-cnn", "resnet50"})
    for (const double mib : {0.0, 0.01, 1e3}) {
      Config c;
      c.model = name, c.slice_mb = mib;
      const FlatModel ghost = flat_model(c, {.kind = Kind::kGhost, .classes = 10, .height = 32, .width = 32});
      const auto model = nn::make_model(name, {32, 32, 3, 10});
      const nn::Flat flat = nn::flatten(*model, allocator(kCpu));
      std::vector<nn::Slice> of_model, of_ghost;
      std::vector<size_t> when_of_model, when_of_ghost;
      const std::vector<nn::Param*> params = model->params();
      size_t done = 0;
      nn::Slicer slicer(flat, nn::slice_bytes_for(flat.g.bytes(), mib));
      const GradReady mark = slicer.start([&](const Tensor& s) {
        const int64_t begin = s.data<float>() - flat.g.data<float>();
        of_model.push_back({begin, begin + s.size()}), when_of_model.push_back(done);
      });
      for (size_t i = params.size(); i-- > 0;) ++done, mark(params[i]->grad);
      slicer.finish();
      for (size_t i = 0; i < ghost.parts.size(); ++i)
        for (const nn::Slice& s : ghost.parts[i].slices)
          of_ghost.push_back(s), when_of_ghost.push_back(i + 1);
      EXPECT_EQ(when_of_ghost, when_of_model) << name << ' ' << mib;
      ASSERT_EQ(of_ghost.size(), of_model.size());
      int64_t numbers = 0;
      for (size_t i = 0; i < of_model.size(); ++i) {
        EXPECT_NEAR(double(of_ghost[i].begin) * ghost.stands_for, double(of_model[i].begin),
                    ghost.stands_for);
        EXPECT_NEAR(double(of_ghost[i].end) * ghost.stands_for, double(of_model[i].end), ghost.stands_for);
        numbers += of_ghost[i].end - of_ghost[i].begin;
      }
      EXPECT_EQ(numbers, ghost.elements);
    }
}

std::vector<double> times_of_slices(const std::vector<FlatPart>& parts) {
  std::vector<double> times;
  double now = 0;
  for (const FlatPart& p : parts) now += p.share, times.insert(times.end(), p.slices.size(), now);
  return times;
}

TEST(FlatModel, BackwardKeepsToATimeline) {
  Config c;
  c.model = "resnet20";
  GradientPlan plan{.kind = Kind::kGhost, .classes = 10, .height = 28, .width = 28, .channels = 1};
  const std::vector<double> even = times_of_slices(flat_model(c, plan).parts);
  ASSERT_EQ(even.size(), 6u);
  EXPECT_NEAR(even.back(), 1, 1e-9);
  plan.timeline = {0.05, 0.1, 0.3, 0.3, 1, 1};
  const FlatModel m = flat_model(c, plan);
  for (const auto& parts : {m.parts, m.sliced_parts()}) {
    const std::vector<double> times = times_of_slices(parts);
    ASSERT_EQ(times.size(), 6u);
    for (size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(times[i], plan.timeline[i], 1e-9) << i;
  }
  EXPECT_GT(m.parts.size(), m.sliced_parts().size());
  plan.timeline.pop_back();
  EXPECT_THROW(flat_model(c, plan), Error);
  plan.timeline.assign(7, 0.5);
  EXPECT_THROW(flat_model(c, plan), Error);
}

}  // namespace
}  // namespace skein::apps
