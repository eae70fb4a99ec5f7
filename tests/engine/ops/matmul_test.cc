// Matrix products and the linear layer: their gradients by differences, with and without 16-bit inputs.
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

TEST(Matmul, HasItsGradients) {
  gradcheck([](const Values& v) { return matmul(v[0], v[1]); },
            {random_uniform({5, 3}, 1), random_uniform({3, 4}, 2)});
  gradcheck([](const Values& v) { return matmul(v[0], v[0]); }, {random_uniform({4, 4}, 1)});
  EXPECT_THROW(matmul(Tensor({2, 3}), Tensor({2, 3})), Error);
}

TEST(Linear, HasItsGradientsWithAndWithoutBias) {
  const Values in{random_uniform({6, 5}, 1), random_uniform({3, 5}, 2), random_uniform({3}, 3)};
  gradcheck([](const Values& v) { return linear(v[0], v[1], v[2]); }, in);
  gradcheck([](const Values& v) { return linear(v[0], v[1]); }, {in[0], in[1]});
  EXPECT_TRUE(allclose(linear(in[0], in[1], in[2]), add(matmul(in[0], transpose(in[1], {1, 0})), in[2])));
  EXPECT_THROW(linear(in[0], in[1], in[0]), Error);
}

TEST(Linear, In16BitsKeepsFloatMasters) {
  for (const DType t : {kBF16, kF16}) {
    const Tensor x = random_uniform({6, 5}, 1, -1, 1, t), w = random_uniform({3, 5}, 2),
                 b = random_uniform({3}, 3);
    const Tensor y = linear(x, w, b);
    EXPECT_EQ(y.dtype(), t);
    EXPECT_TRUE(allclose(values(y), values(linear(cast(x, kF32), w, b)), 2 * tolerance(t)));
    const Tensor r = random_uniform({6, 3}, 4, -1, 1, t);
    const Function f = [](const Values& v) { return linear(v[0], v[1], v[2]); };
    const Values g = gradients(f, {x, w, b}, r), want = gradients(f, {cast(x, kF32), w, b}, cast(r, kF32));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(g[i].dtype(), i == 0 ? t : kF32);
      EXPECT_TRUE(allclose(values(g[i]), values(want[i]), 2 * tolerance(t))) << t << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace skein
