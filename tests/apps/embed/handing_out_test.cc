// Slices of a gradient: the same ones in the same order, whatever becomes final first.
#include "apps/embed/handing_out.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace skein {
namespace {

// What a step hands out: begin and size of each slice, and a 0 where all of it was waited for.
struct Taker {
  explicit Taker(const Tensor& g) : origin(g.data<float>()) {}
  optim::Slices slices() {
    return {.ready =
                [this](const Tensor& s) {
                  taken.push_back({s.data<float>() - origin, s.size()});
                },
            .complete =
                [this] {
                  taken.push_back({-1, 0});
                }};
  }
  const float* origin;
  std::vector<std::pair<int64_t, int64_t>> taken;
};

TEST(HandingOut, HandsOutTheSameSlicesInWhateverOrderParametersBecomeFinal) {
  const std::vector<int64_t> sizes = {5, 0, 3, 1, 1, 4};
  const Tensor g({14});
  const std::vector<std::pair<int64_t, int64_t>> expected = {{10, 4}, {5, 5}, {0, 5}, {-1, 0}};
  HandingOut out(g, sizes, 4 * sizeof(float));
  std::vector<size_t> order = {0, 1, 2, 3, 4, 5};
  std::mt19937 draw(3);
  for (int i = 0; i < 50; ++i) {
    std::shuffle(order.begin(), order.end(), draw);
    Taker taker(g);
    const optim::Slices slices = taker.slices();
    out.begin(slices);
    for (size_t p = 0; p < size_t(i % 7); ++p) out.ready(order[p]);  // others only at the end
    out.end();
    EXPECT_EQ(taker.taken, expected);
  }
}

TEST(HandingOut, HandsOutEarlyWhatIsComplete) {
  const Tensor g({12});
  HandingOut out(g, {4, 4, 4}, 16);
  Taker taker(g);
  const optim::Slices slices = taker.slices();
  out.begin(slices);
  out.ready(1);
  EXPECT_TRUE(taker.taken.empty()) << "backward reaches the last one first";
  out.ready(2);
  EXPECT_EQ(taker.taken.size(), 2u);
  out.end();
  EXPECT_EQ(taker.taken.size(), 4u);
  EXPECT_THROW(out.ready(0), Error) << "no step is under way";
  EXPECT_THROW(HandingOut(g, {4, 4}, 16), Error) << "sizes of another vector";
}

}  // namespace
}  // namespace skein
