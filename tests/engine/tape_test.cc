// The tape: order, accumulation, ownership of gradients.
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

Tensor vec(std::vector<float> v) {
  const int64_t n = int64_t(v.size());
  return Tensor::of({n}, v);
}

TEST(Tape, NothingIsRecordedWithoutOne) {
  EXPECT_EQ(Tape::current(), nullptr);
  const Tensor x = vec({1, 2});
  {
    Tape tape;
    EXPECT_EQ(Tape::current(), &tape);
    EXPECT_FALSE(tape.wants(square(x)));  // nor a value that depends on no leaf
    Tensor g({2});
    tape.watch(x, g);
    EXPECT_TRUE(tape.wants(square(x)));
    NoTape off;
    EXPECT_EQ(Tape::current(), nullptr);
    EXPECT_FALSE(tape.wants(square(x)));
  }
  EXPECT_EQ(Tape::current(), nullptr);
}

TEST(Tape, DiamondsAddBothPaths) {
  gradcheck(
      [](const Values& v) {
        const Tensor a = square(v[0]), b = tanh(a), c = sigmoid(a);
        return mul(add(b, c), add(a, b));
      },
      {random_uniform({7}, 1)});
}

TEST(Tape, AnOperandUsedTwiceByOneOpGetsBothGradients) {
  const Tensor x = vec({3, -2}), w = vec({1, 1});
  EXPECT_EQ(values(gradients([](const Values& v) { return add(v[0], v[0]); }, {x}, w)[0]),
            (std::vector<double>{2, 2}));
  EXPECT_EQ(values(gradients([](const Values& v) { return sub(v[0], v[0]); }, {x}, w)[0]),
            (std::vector<double>{0, 0}));
  EXPECT_EQ(values(gradients([](const Values& v) { return mul(v[0], v[0]); }, {x}, w)[0]),
            (std::vector<double>{6, -4}));
  const auto inner_add = [](const Values& v) {  // the doubled operand is not a leaf
    const Tensor s = square(v[0]);
    return add(s, s);
  };
  EXPECT_EQ(values(gradients(inner_add, {x}, w)[0]), (std::vector<double>{12, -8}));
}

// add gives dy away to one operand while the other's gradient is computed from it; they
// must not share memory.
TEST(Tape, GivenGradientsAreNotShared) {
  gradcheck(
      [](const Values& v) {
        const Tensor a = square(v[0]), b = exp(v[1]);
        const Tensor s = add(a, b);
        return mul(add(s, a), add(s, b));
      },
      {random_uniform({5}, 1), random_uniform({5}, 2)});
  gradcheck(
      [](const Values& v) {
        const Tensor a = square(v[0]), flat = reshape(a, {6});
        return mul(add(reshape(flat, {2, 3}), a), a);
      },
      {random_uniform({2, 3}, 1)});
}

TEST(Tape, GradientsAreWrittenNotAddedAndUnusedLeavesGetZero) {
  const Tensor x = vec({1, 2}), unused = vec({5});
  Tensor gx = vec({100, 100}), gu = vec({100});
  Tape tape;
  tape.watch(x, gx);
  tape.watch(unused, gu);
  tape.backward(sum(square(x)));
  EXPECT_EQ(values(gx), (std::vector<double>{2, 4}));
  EXPECT_EQ(values(gu), (std::vector<double>{0}));
}

TEST(Tape, ALeafBehindNoGradientGetsZero) {
  const Tensor x = vec({1, 2}), y = vec({3, 4});
  Tensor gx({2}), gy = vec({9, 9});
  Tape tape;
  tape.watch(x, gx);
  tape.watch(y, gy);
  square(y);  // recorded, but the loss does not depend on it
  tape.backward(sum(x));
  EXPECT_EQ(values(gy), (std::vector<double>{0, 0}));
}

TEST(Tape, TheLossMayBeALeaf) {
  const Tensor x = vec({4});
  Tensor g = vec({9});
  Tape tape;
  tape.watch(x, g);
  tape.backward(x);
  EXPECT_EQ(values(g), (std::vector<double>{1}));
}

TEST(Tape, AWatchedResultKeepsItsGradient) {
  const Tensor x = vec({1, 2});
  Tensor gx({2}), gs({2});
  Tape tape;
  tape.watch(x, gx);
  const Tensor s = add(x, x);
  tape.watch(s, gs);
  tape.backward(sum(square(s)));
  EXPECT_EQ(values(gs), (std::vector<double>{4, 8}));
  EXPECT_EQ(values(gx), (std::vector<double>{8, 16}));
}

TEST(Tape, LeavesUsedLateAreReadyFirstAndEachOnce) {
  const Tensor a = vec({2}), b = vec({3}), c = vec({4}), unused = vec({1});
  Values grads{vec({0}), vec({0}), vec({0}), vec({0})};
  Tape tape;
  tape.watch(a, grads[0]);
  tape.watch(b, grads[1]);
  tape.watch(c, grads[2]);
  tape.watch(unused, grads[3]);
  Tensor h = mul(a, b);  // a and b first used here, a again below
  h = mul(h, c);
  h = mul(h, a);
  std::vector<const void*> order;
  std::vector<double> then;
  tape.backward(sum(h), [&](Tensor g) {
    order.push_back(g.raw());
    then.push_back(values(g)[0]);
  });
  ASSERT_EQ(order.size(), 4u);
  EXPECT_EQ(order[0], grads[3].raw());
  EXPECT_EQ(order[1], grads[2].raw());
  EXPECT_EQ(then, (std::vector<double>{0, 12, order[2] == grads[0].raw() ? 48.0 : 16.0,
                                       // Gradients are final when ready() is called.
                                       order[2] == grads[0].raw() ? 16.0 : 48.0}));
}

TEST(Tape, TapesNest) {
  const Tensor x = vec({3});
  Tensor outer_grad({1}), inner_grad({1});
  Tape outer;
  outer.watch(x, outer_grad);
  const Tensor y = square(x);
  {
    Tape inner;
    inner.watch(x, inner_grad);
    inner.backward(sum(mul(x, x)));
  }
  EXPECT_EQ(Tape::current(), &outer);
  outer.backward(sum(mul(y, x)));
  EXPECT_EQ(values(inner_grad)[0], 6);
  EXPECT_EQ(values(outer_grad)[0], 27);
}

TEST(Tape, CanBeUsedAgainAfterBackward) {
  const Tensor x = vec({3});
  Tape tape;
  for (int i = 0; i < 3; ++i) {
    Tensor g({1});
    tape.watch(x, g);
    tape.backward(sum(square(x)));
    EXPECT_EQ(values(g)[0], 6);
  }
}

TEST(Tape, PullbacksOverwriteFirstAndAddLater) {
  const Tensor x = vec({1, 1});
  Tensor g = vec({7, 7});
  std::vector<float> betas;
  Tape tape;
  tape.watch(x, g);
  const auto touch = [&] {
    return record({.op = "touch", .in = {x}, .out = x.clone()}, [&, x](const Tensor& dy, Pull& pull) {
      pull(x, [&](const Tensor& dx, float beta) {
        betas.push_back(beta);
        for (int i = 0; i < 2; ++i)
          dx.data<float>()[i] = dy.data<float>()[i] + (beta == 0 ? 0 : dx.data<float>()[i]);
      });
    });
  };
  const Tensor a = touch(), b = touch(), c = touch();
  tape.backward(sum(add(add(a, b), c)));
  EXPECT_EQ(betas, (std::vector<float>{0, 1, 1}));
  EXPECT_EQ(values(g), (std::vector<double>{3, 3}));
}

TEST(Tape, BackwardStartsFromOneNumber) {
  Tape tape;
  EXPECT_THROW(tape.backward(vec({1, 2})), Error);
}

TEST(Tape, ActivationsDieOnTheWayBack) {
  const Tensor x = random_uniform({1 << 16}, 1);
  Tensor g(x.shape());
  Tape tape;
  tape.watch(x, g);
  const int64_t before = memory_use(kCpu).now;
  {
    Tensor h = x;
    for (int i = 0; i < 8; ++i) h = tanh(h);
    EXPECT_GE(memory_use(kCpu).now, before + 8 * x.bytes());
    const Tensor loss = sum(h);
    h = {};
    tape.backward(loss);
  }
  EXPECT_LT(memory_use(kCpu).now, before + x.bytes());
}

}  // namespace
}  // namespace skein
