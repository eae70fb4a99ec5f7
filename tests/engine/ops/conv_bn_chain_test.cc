// A chain of fused convolutions: it is one op after another, bit for bit.
#include "engine/outline.h"
#include "tests/support/norms.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

// Two links of 6 channels on images of 4.
std::vector<ConvBnLink> two_links() {
  return {{random_normal({6, 3, 3, 4}, 2, 0.3f), {.padding = 1}, fresh(6)},
          {random_normal({6, 1, 1, 6}, 3, 0.5f), {.stride = 2}, fresh(6)}};
}

TEST(ConvBnChain, IsOneOpAfterAnotherBitForBit) {
  for (const DType t : {kF32, kBF16, kF16})
    for (const bool training : {true, false})
      for (const bool relu : {true, false}) {
        const Tensor x = random_normal({3, 6, 6, 4}, 1, 1, t), add = random_normal({3, 3, 3, 6}, 4, 1, t);
        const std::vector<ConvBnLink> a = two_links(), b = two_links();
        const Tensor dx(x.shape(), t), dw(a[0].w.shape()), other_dx(x.shape(), t), other_dw(dw.shape());
        Tape tape;
        tape.watch(x, dx), tape.watch(a[0].w, dw);
        const Tensor y = conv_bn_chain(x, a, training, relu, [&] { return add; });
        tape.backward(sum(mul(y, add)));
        Tape other;
        other.watch(x, other_dx), other.watch(b[0].w, other_dw);
        const Tensor between = conv_bn(x, b[0].w, b[0].geometry, b[0].norm, {training, true, {}});
        const Tensor want = conv_bn(between, b[1].w, b[1].geometry, b[1].norm, {training, relu, add});
        other.backward(sum(mul(want, add)));
        EXPECT_EQ(values(y), values(want)) << t << training << relu;
        EXPECT_EQ(values(dx), values(other_dx)) << t << training << relu;
        EXPECT_EQ(values(dw), values(other_dw)) << t << training << relu;
        EXPECT_EQ(values(a[1].norm.running_var), values(b[1].norm.running_var));
      }
}

TEST(ConvBnChain, AsksForTheResidualJustBeforeTheLastConvolution) {
  const std::vector<ConvBnLink> links = two_links();
  const Tensor x = random_normal({3, 6, 6, 4}, 1);
  const std::vector<double> first = values(links[0].norm.running_mean),
                            last = values(links[1].norm.running_mean);
  int asked = 0;
  conv_bn_chain(x, links, true, true, [&] {
    ++asked;
    EXPECT_NE(values(links[0].norm.running_mean), first);
    EXPECT_EQ(values(links[1].norm.running_mean), last);
    return random_normal({3, 3, 3, 6}, 4);
  });
  EXPECT_EQ(asked, 1);
  EXPECT_THROW(conv_bn_chain(x, {}, true), Error);
}

TEST(ConvBnChain, IsListedAsItsConvolutions) {
  const Outline outline;
  const Tensor y = conv_bn_chain(random_normal({3, 6, 6, 4}, 1), two_links(), false);
  ASSERT_EQ(outline.steps().size(), 2u);
  EXPECT_EQ(outline.steps()[0].op, "conv_bn");
  EXPECT_EQ(outline.source(y)->op, "conv_bn");
}

}  // namespace
}  // namespace skein
