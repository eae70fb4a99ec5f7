// Muon against its formula in float64, and what its iteration does to matrices.
#include <algorithm>

#include "engine/orthogonal.h"
#include "tests/optim/rule/fixtures.h"

namespace skein::optim {
namespace {

using namespace fixtures;

TEST(Muon, FollowsTheFormula) { EXPECT_EQ(follow_fixtures("muon", 1e-6), 3); }

// The polynomial of one singular value.
double iterated(double s, int steps) {
  for (int i = 0; i < steps; ++i) s = s * (3.4445 + s * s * (-4.7750 + s * s * 2.0315));
  return s;
}

// Of U S V' the iteration changes S alone: here U and V are permutations, so the numbers are seen one by one.
TEST(NewtonSchulz, ActsOnSingularValuesAlone) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>(5, 5), {3, 8}, {8, 3}}) {
    const int64_t n = std::min(rows, columns);
    const Tensor x = Tensor::zeros({rows, columns});
    for (int64_t i = 0; i < n; ++i)
      x.data<float>()[(i + 1) % rows * columns + (i + 2) % columns] = 0.9f / float(1 + i);
    const Tensor before = x.clone();
    newton_schulz(x, 5);
    for (int64_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(x.data<float>()[i], iterated(before.data<float>()[i], 5), 1e-5) << rows << 'x' << columns;
  }
}

// An orthogonal gradient is returned, but for singular values that the iteration leaves within [0.7, 1.2].
TEST(Muon, ReturnsAnOrthogonalGradient) {
  const int64_t n = 4;
  const float h[] = {1, 1, 1, 1, 1, -1, 1, -1, 1, 1, -1, -1, 1, -1, -1, 1};  // Hadamard's
  const Tensor x = Tensor::zeros({64}), g = Tensor::zeros({64});
  for (int64_t i = 0; i < n * n; ++i) g.data<float>()[i] = h[i] / 2;
  const Segments all({{.end = 64, .rows = n, .columns = n, .hidden = true}}, kCpu);
  make_rule("muon", {}, {.like = x, .segments = all})->step(x, g, 1.f);
  for (int64_t i = 0; i < n * n; ++i) EXPECT_NEAR(-x.data<float>()[i] / g.data<float>()[i], 1, 0.3);
}

// A tall matrix moves further by sqrt(rows / columns), a flat one does not.
TEST(Muon, TallMatricesMoveFurther) {
  const auto moved = [](int64_t rows, int64_t columns) {
    const Tensor x = Tensor::zeros({64}), g = Tensor::zeros({64});
    for (int64_t i = 0; i < 4; ++i) g.data<float>()[i * columns + i] = 1;
    const Segments all({{.end = 64, .rows = rows, .columns = columns, .hidden = true}}, kCpu);
    make_rule("muon", {}, {.like = x, .segments = all})->step(x, g, 1.f);
    return norm(x);
  };
  EXPECT_NEAR(moved(16, 4) / moved(4, 4), 2, 1e-5);
  EXPECT_NEAR(moved(4, 16) / moved(4, 4), 1, 1e-5);
}

}  // namespace
}  // namespace skein::optim
