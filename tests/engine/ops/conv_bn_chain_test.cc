// A chain of fused convolutions: it is one op after another, bit for bit.
#include "engine/device/device.h"
#include "engine/outline.h"
#include "engine/recompute.h"
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
      for (const bool relu : {true, false})
        for (const bool recompute : {true, false}) {
          const Tensor x = random_normal({3, 6, 6, 4}, 1, 1, t), add = random_normal({3, 3, 3, 6}, 4, 1, t);
          const std::vector<ConvBnLink> a = two_links(), b = two_links();
          const Tensor dx(x.shape(), t), dw(a[0].w.shape()), other_dx(x.shape(), t), other_dw(dw.shape());
          const Tensor dgamma({6}), other_dgamma({6});
          Tape tape;
          tape.watch(x, dx), tape.watch(a[0].w, dw), tape.watch(a[0].norm.gamma, dgamma);
          recompute_norms() = recompute;
          const Tensor y = conv_bn_chain(x, a, training, relu, [&] { return add; });
          recompute_norms() = false;
          tape.backward(sum(mul(y, add)));
          Tape other;
          other.watch(x, other_dx), other.watch(b[0].w, other_dw), other.watch(b[0].norm.gamma, other_dgamma);
          const Tensor between = conv_bn(x, b[0].w, b[0].geometry, b[0].norm, {training, true, {}});
          const Tensor want = conv_bn(between, b[1].w, b[1].geometry, b[1].norm, {training, relu, add});
          other.backward(sum(mul(want, add)));
          EXPECT_EQ(values(y), values(want)) << t << training << relu;
          EXPECT_EQ(values(dx), values(other_dx)) << t << training << relu;
          EXPECT_EQ(values(dw), values(other_dw)) << t << training << relu << recompute;
          EXPECT_EQ(values(dgamma), values(other_dgamma)) << t << training << relu << recompute;
          EXPECT_EQ(values(a[1].norm.running_var), values(b[1].norm.running_var));
        }
}

// The image between two convolutions is the only difference: what is in use after forward is
// what backward needs.
TEST(ConvBnChain, KeepsNoImageBetweenConvolutionsIfNormsAreComputedAgain) {
  const auto kept = [](bool recompute) {
    const std::vector<ConvBnLink> links = two_links();
    const Tensor x = random_normal({4, 64, 64, 4}, 1), dw(links[0].w.shape());
    Tape tape;
    tape.watch(links[0].w, dw);
    recompute_norms() = recompute;
    const int64_t before = memory_use(kCpu).now;
    const Tensor y = conv_bn_chain(x, links, true);
    recompute_norms() = false;
    return memory_use(kCpu).now - before;
  };
  constexpr int64_t kImage = 4 * 64 * 64 * 6 * sizeof(float);
  EXPECT_EQ(kept(false) - kept(true), kImage);
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
