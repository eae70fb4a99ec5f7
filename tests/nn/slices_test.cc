// Slices: which parts of a gradient come when, and that all of it comes once.
#include "nn/slices.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "nn/layers.h"
#include "nn/models.h"

namespace skein::nn {
namespace {

int64_t place_in(const Flat& flat, const Tensor& slice) { return slice.data<float>() - flat.g.data<float>(); }

struct Sliced {
  std::vector<std::pair<int64_t, int64_t>> slices;  // begin, end
  std::vector<size_t> when;                         // gradients that were final when the slice came
};
// A step in which segments become final in the given order (of indices of flat.segments).
Sliced slice(Slicer& slicer, const Flat& flat, const std::vector<size_t>& order) {
  Sliced got;
  size_t final_so_far = 0;
  const GradReady mark = slicer.start([&](const Tensor& s) {
    const int64_t begin = place_in(flat, s);
    got.slices.push_back({begin, begin + s.size()});
    got.when.push_back(final_so_far);
  });
  for (const size_t i : order) {
    ++final_so_far;
    mark(flat.g.view(flat.segments[i].shape, flat.segments[i].offset));
  }
  slicer.finish();
  return got;
}
std::vector<size_t> reversed(const Flat& flat) {
  std::vector<size_t> order(flat.segments.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  return order;
}

TEST(Slicer, EveryElementIsInExactlyOneSliceWhateverTheOrderAndTheSize) {
  const auto m = make_model("resnet18-cifar", {32, 32, 3, 10});
  const Flat flat = flatten(*m, allocator(kCpu));
  for (const int64_t bytes :
       {int64_t(1), int64_t(1000), int64_t(1) << 18, int64_t(4) << 20, int64_t(1) << 40})
    for (const int kind : {0, 1, 2}) {
      std::vector<size_t> order = reversed(flat);
      if (kind == 1) std::reverse(order.begin(), order.end());
      if (kind == 2) order.resize(order.size() / 2);  // frozen parameters are never reported as final
      Slicer slicer(flat, bytes);
      for (int step = 0; step < 2; ++step) {
        Sliced got = slice(slicer, flat, order);
        std::sort(got.slices.begin(), got.slices.end());
        int64_t at = 0;
        for (const auto& [begin, end] : got.slices) {
          ASSERT_EQ(begin, at);
          EXPECT_LE((end - begin) * 4, std::max<int64_t>(bytes + 255, 256));
          at = end;
        }
        EXPECT_EQ(at, flat.g.size());
      }
    }
}

TEST(Slicer, SmallGradientsAreCutSmall) {
  constexpr int64_t kMiB = 1 << 20;
  EXPECT_EQ(slice_bytes_for(100 * kMiB), 4 * kMiB);
  EXPECT_EQ(slice_bytes_for(8 * kMiB), kMiB);
  EXPECT_EQ(slice_bytes_for(kMiB), kMiB / 4);
  EXPECT_EQ(slice_bytes_for(kMiB, 0.5), kMiB / 2);
  EXPECT_EQ(slice_bytes_for(kMiB, 1e-9), 1);
  EXPECT_GT(slice_bytes_for(kMiB, 1e300), kMiB);
}

TEST(Slicer, SlicesComeInOneOrderAndOnlyWhenTheirGradientsAreFinal) {
  const auto m = make_model("resnet20", {8, 8, 3, 10});
  const Flat flat = flatten(*m, allocator(kCpu));
  Slicer slicer(flat, 64 << 10);
  const Sliced plain = slice(slicer, flat, reversed(flat));
  std::vector<size_t> swapped = reversed(flat);
  for (size_t i = 0; i + 3 < swapped.size(); i += 4) std::swap(swapped[i], swapped[i + 3]);
  const Sliced other = slice(slicer, flat, swapped);
  EXPECT_EQ(plain.slices, other.slices);
  for (const auto& [got, order] : {std::pair{plain, reversed(flat)}, std::pair{other, swapped}})
    for (size_t i = 0; i < got.slices.size(); ++i)
      for (size_t k = got.when[i]; k < order.size(); ++k) {  // not final yet
        const Segment& s = flat.segments[order[k]];
        const bool apart =
            s.offset >= got.slices[i].second || s.offset + s.shape.volume() <= got.slices[i].first;
        EXPECT_TRUE(apart) << s.name << " was in a slice before it was final";
      }
}

TEST(Slicer, GrowsFromTheEndOfTheWeightsDuringBackwardAndTheLastSlicesAreSmall) {
  const auto m = make_model("resnet18-cifar", {8, 8, 3, 10});
  const Flat flat = flatten(*m, allocator(kCpu));
  initialize(*m, 1);
  Slicer slicer(flat, 4 << 20);
  std::vector<std::pair<int64_t, int64_t>> slices;
  std::vector<int64_t> finals;  // leaves final before each slice
  int64_t leaves = 0;
  const GradReady mark = slicer.start([&](const Tensor& s) {
    slices.push_back({place_in(flat, s), s.size()});
    finals.push_back(leaves);
  });
  {
    Tape tape;
    for (Param* p : m->params()) tape.watch(p->value, p->grad);
    Tensor x({2, 8, 8, 3});
    fill_normal(x, {.seed = 1}, 0, 1);
    tape.backward(cross_entropy(m->forward(x), Tensor::of<int32_t>({2}, {0, 1})), [&](const Tensor& g) {
      ++leaves;
      mark(g);
    });
  }
  slicer.finish();
  ASSERT_GT(slices.size(), 10u);
  EXPECT_EQ(slices[0].first + slices[0].second, flat.decayed);
  for (size_t i = 1; i + 1 < slices.size(); ++i)
    EXPECT_EQ(slices[i].first + slices[i].second, slices[i - 1].first);
  EXPECT_EQ(slices[slices.size() - 2].first, 0);
  EXPECT_EQ(slices.back().first, flat.decayed);
  EXPECT_LE(slices[slices.size() - 2].second * 4, 1 << 20);
  EXPECT_LE(slices.back().second * 4, 1 << 20);
  const auto early = std::count_if(finals.begin(), finals.end(), [&](int64_t n) { return n < leaves / 2; });
  EXPECT_GT(early, int64_t(slices.size()) / 2)
      << "most of the bytes lie in the last layers, which are final early";
}

TEST(Slicer, RefusesAGradientFinalTwiceOrNotOfItsVector) {
  const auto m = make_model("mlp", {8, 8, 1, 10});
  const Flat flat = flatten(*m, allocator(kCpu));
  Slicer slicer(flat, 1 << 20);
  const GradReady mark = slicer.start({});
  const Tensor first = m->params()[0]->grad;
  mark(first);
  EXPECT_THROW(mark(first), Error);
  EXPECT_THROW(mark(flat.g.view({1}, 1)), Error);
}

}  // namespace
}  // namespace skein::nn
