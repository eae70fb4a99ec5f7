// A chain of fused convolutions: it is one op after another, bit for bit.
#include "engine/device/device.h"
#include "engine/outline.h"
#include "engine/recompute.h"
#include "tests/support/norms.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

// A bottleneck: three links, of which the second is a norm between others when it is computed again.
std::vector<ConvBnLink> three_links() {
  return {{random_normal({5, 1, 1, 4}, 5, 0.5f), {}, fresh(5)},
          {random_normal({6, 3, 3, 5}, 2, 0.3f), {.padding = 1}, fresh(6)},
          {random_normal({6, 1, 1, 6}, 3, 0.5f), {.stride = 2}, fresh(6)}};
}

// The choice of this process while it lives.
class Recomputing {
 public:
  explicit Recomputing(bool on) { recompute_norms() = on; }
  ~Recomputing() { recompute_norms() = before_; }

 private:
  const bool before_ = recompute_norms();
};

// What a step leaves of a chain: its result, the gradients and the running statistics.
using Left = std::vector<std::vector<double>>;
template <class Chain>
Left step(const Tensor& x, const Tensor& add, const Chain& chain) {
  const std::vector<ConvBnLink> links = three_links();
  Values gradients;
  Tape tape;
  const auto watch = [&](const Tensor& of) {
    gradients.push_back(Tensor(of.shape(), of.dtype()));
    tape.watch(of, gradients.back());
  };
  watch(x);
  for (const ConvBnLink& l : links) watch(l.w), watch(l.norm.gamma), watch(l.norm.shift);
  const Tensor y = chain(links);
  tape.backward(sum(mul(y, add)));
  Left left{values(y)};
  for (const Tensor& g : gradients) left.push_back(values(g));
  for (const ConvBnLink& l : links)
    left.push_back(values(l.norm.running_mean)), left.push_back(values(l.norm.running_var));
  return left;
}

TEST(ConvBnChain, IsOneOpAfterAnotherBitForBit) {
  for (const DType t : {kF32, kBF16, kF16})
    for (const bool training : {true, false})
      for (const bool relu : {true, false})
        for (const bool recompute : {true, false}) {
          const Tensor x = random_normal({3, 6, 6, 4}, 1, 1, t), add = random_normal({3, 3, 3, 6}, 4, 1, t);
          const Recomputing choice(recompute);
          const Left got = step(x, add, [&](const std::vector<ConvBnLink>& l) {
            return conv_bn_chain(x, l, training, relu, [&] { return add; });
          });
          const Left want = step(x, add, [&](const std::vector<ConvBnLink>& l) {
            const auto link = [&](const Tensor& in, size_t i, bool on, const Tensor& residual) {
              return conv_bn(in, l[i].w, l[i].geometry, l[i].norm, {training, on, residual});
            };
            return link(link(link(x, 0, true, {}), 1, true, {}), 2, relu, add);
          });
          ASSERT_EQ(got.size(), want.size());
          for (size_t i = 0; i < got.size(); ++i)
            EXPECT_EQ(got[i], want[i]) << t << training << relu << recompute << ", the " << i;
        }
}

// The images between convolutions are the only difference in what backward finds in use.
TEST(ConvBnChain, KeepsNoImageBetweenConvolutionsIfNormsAreComputedAgain) {
  const auto kept = [](bool recompute) {
    const std::vector<ConvBnLink> links = three_links();
    const Tensor x = random_normal({4, 64, 64, 4}, 1), dw(links[0].w.shape());
    Tape tape;
    tape.watch(links[0].w, dw);
    const Recomputing choice(recompute);
    const int64_t before = memory_use(kCpu).now;
    const Tensor y = conv_bn_chain(x, links, true);
    return memory_use(kCpu).now - before;
  };
  constexpr int64_t kImages = 4 * 64 * 64 * (5 + 6) * sizeof(float);
  EXPECT_EQ(kept(false) - kept(true), kImages);
}

TEST(ConvBnChain, AsksForTheResidualJustBeforeTheLastConvolution) {
  const std::vector<ConvBnLink> links = three_links();
  const Tensor x = random_normal({3, 6, 6, 4}, 1);
  const std::vector<double> before_last = values(links[1].norm.running_mean),
                            last = values(links[2].norm.running_mean);
  int asked = 0;
  conv_bn_chain(x, links, true, true, [&] {
    ++asked;
    EXPECT_NE(values(links[1].norm.running_mean), before_last);
    EXPECT_EQ(values(links[2].norm.running_mean), last);
    return random_normal({3, 3, 3, 6}, 4);
  });
  EXPECT_EQ(asked, 1);
  EXPECT_THROW(conv_bn_chain(x, {}, true), Error);
}

TEST(ConvBnChain, IsListedAsItsConvolutions) {
  const Outline outline;
  const Tensor y = conv_bn_chain(random_normal({3, 6, 6, 4}, 1), three_links(), false);
  ASSERT_EQ(outline.steps().size(), 3u);
  EXPECT_EQ(outline.steps()[0].op, "conv_bn");
  EXPECT_EQ(outline.source(y)->op, "conv_bn");
}

}  // namespace
}  // namespace skein
