// Modules: the flat vector and its layout, the initial values drawn into it, and the two modes.
#include "nn/module.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/vectors/vec.h"
#include "nn/layers.h"
#include "nn/models.h"
#include "tests/support/images.h"

namespace skein::nn {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.raw(), b.raw(), size_t(a.bytes())) == 0;
}
int64_t offset_in(const Tensor& whole, const Tensor& window) {
  return (static_cast<char*>(window.raw()) - static_cast<char*>(whole.raw())) / int64_t(sizeof(float));
}
Tensor value_of(Module& m, const std::string& name) {
  for (Param* p : m.params())
    if (p->name == name) return p->value;
  throw Error("no parameter " + name);
}

class Flatten : public ::testing::Test {
 protected:
  std::unique_ptr<Module> m = make_model("resnet20", {8, 8, 3, 10});
};

TEST_F(Flatten, SegmentsLieInTwoRegionsInDeclarationOrderAligned) {
  const Flat flat = flatten(*m, allocator(kCpu));
  EXPECT_EQ(flat.count, count_params(*m));
  std::vector<Param*> wanted;
  for (const bool decays : {true, false})
    for (Param* p : m->params())
      if (p->decays == decays) wanted.push_back(p);
  ASSERT_EQ(flat.segments.size(), wanted.size());
  int64_t end = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Segment& s = flat.segments[i];
    EXPECT_EQ(s.name, wanted[i]->name);
    EXPECT_EQ(s.shape, wanted[i]->value.shape());
    EXPECT_EQ(s.decays, wanted[i]->decays);
    EXPECT_EQ(s.decays, s.offset < flat.decayed) << s.name;
    EXPECT_EQ(s.offset * 4 % 256, 0) << s.name;
    EXPECT_GE(s.offset, end) << s.name;
    EXPECT_LT(s.offset - end, 64) << "more padding than needed before " << s.name;
    EXPECT_EQ(m->params()[s.param], wanted[i]);
    EXPECT_EQ(offset_in(flat.x, wanted[i]->value), s.offset);
    EXPECT_EQ(offset_in(flat.g, wanted[i]->grad), s.offset);
    end = s.offset + s.shape.volume();
  }
  EXPECT_LE(end, flat.x.size());
  EXPECT_EQ(flat.x.shape(), flat.g.shape());
}

TEST_F(Flatten, OnlyMatricesAndConvolutionsDecay) {
  for (Param* p : m->params()) EXPECT_EQ(p->decays, p->value.rank() > 1) << p->name;
}

TEST_F(Flatten, KeepsValuesAndWindowsAliasTheVector) {
  initialize(*m, 5);
  std::map<std::string, Tensor> before;
  for (Param* p : m->params()) before[p->name] = p->value.clone();
  for (Buffer* b : m->buffers()) before[b->name] = b->value.clone();
  const Flat flat = flatten(*m, allocator(kCpu));
  for (Param* p : m->params()) EXPECT_TRUE(same_bits(p->value, before[p->name])) << p->name;
  for (Buffer* b : m->buffers()) EXPECT_TRUE(same_bits(b->value, before[b->name])) << b->name;

  fill(flat.x, 3.f);
  fill(flat.g, 4.f);
  fill(flat.buffers, 5.f);
  for (Param* p : m->params()) EXPECT_EQ(p->value.data<float>()[p->value.size() - 1], 3.f) << p->name;
  for (Param* p : m->params()) EXPECT_EQ(p->grad.data<float>()[0], 4.f) << p->name;
  for (Buffer* b : m->buffers()) EXPECT_EQ(b->value.data<float>()[0], 5.f) << b->name;
}

TEST_F(Flatten, PaddingIsZeroAndStaysZeroThroughAStep) {
  const Flat flat = flatten(*m, allocator(kCpu));
  initialize(*m, 5);
  Tensor x({4, 8, 8, 3});
  fill_normal(x, {.seed = 1}, 0, 1);
  Tape tape;
  for (Param* p : m->params()) tape.watch(p->value, p->grad);
  tape.backward(cross_entropy(m->forward(x), Tensor::of<int32_t>({4}, {0, 1, 2, 3})));
  sgd_update({.x = flat.x,
              .v = Tensor::zeros(flat.x.shape()),
              .g = flat.g,
              .at = flat.x,
              .lr = 0.1f,
              .mu = 0.9f,
              .decay = 0.1f,
              .decayed = flat.decayed});
  std::vector<bool> real(size_t(flat.x.size()), false);
  for (const Segment& s : flat.segments) std::fill_n(real.begin() + s.offset, s.shape.volume(), true);
  EXPECT_EQ(std::count(real.begin(), real.end(), true), flat.count);
  for (size_t i = 0; i < real.size(); ++i)
    if (!real[i]) { EXPECT_TRUE(flat.x.data<float>()[i] == 0 && flat.g.data<float>()[i] == 0) << i; }
  EXPECT_GT(norm(flat.g), 0);
}

// ---- initial values ----

TEST(Initialize, IsTheSameBeforeAndAfterFlattenAndDiffersBySeed) {
  const auto a = make_model("resnet20", {8, 8, 3, 10}), b = make_model("resnet20", {8, 8, 3, 10});
  initialize(*a, 7);
  const Flat fa = flatten(*a, allocator(kCpu)), fb = flatten(*b, allocator(kCpu));
  initialize(*b, 7);
  EXPECT_TRUE(same_bits(fa.x, fb.x));
  EXPECT_TRUE(same_bits(fa.buffers, fb.buffers));
  initialize(*b, 8);
  EXPECT_FALSE(same_bits(fa.x, fb.x));
}

// Mean 0 and the deviation asked for, both within five standard errors.
void expect_spread(const Tensor& w, double deviation) {
  double sum = 0;
  for (int64_t i = 0; i < w.size(); ++i) sum += w.data<float>()[i];
  const double n = double(w.size());
  EXPECT_NEAR(sum / n, 0, 5 * deviation / std::sqrt(n));
  EXPECT_NEAR(norm(w) / std::sqrt(n), deviation, 5 * deviation / std::sqrt(2 * n));
}

TEST(Initialize, ResNetsStartAsInGoyal) {
  const auto m = make_model("resnet50", {64, 64, 3, 1000});
  initialize(*m, 1);
  expect_spread(value_of(*m, "conv1.weight"), std::sqrt(2. / (64 * 49)));
  expect_spread(value_of(*m, "layer4.2.conv2.weight"), std::sqrt(2. / (512 * 9)));
  expect_spread(value_of(*m, "fc.weight"), 0.01);
  EXPECT_EQ(norm(value_of(*m, "fc.bias")), 0);
  int zero = 0;
  for (Param* p : m->params())
    if (p->name.ends_with("bn3.weight")) {
      EXPECT_EQ(norm(p->value), 0) << p->name;
      ++zero;
    } else if (p->name.ends_with("bn1.weight") || p->name.ends_with("downsample.1.weight")) {
      EXPECT_EQ(p->value.data<float>()[0], 1) << p->name;
    }
  EXPECT_EQ(zero, 16);
  for (Buffer* b : m->buffers())
    EXPECT_EQ(b->value.data<float>()[1], b->name.ends_with("running_var") ? 1.f : 0.f) << b->name;
}

TEST(Initialize, PlainNetsStartAsPyTorchDoes) {
  const auto m = make_model("cnn7", {28, 28, 3, 10});
  initialize(*m, 1);
  const Tensor w = value_of(*m, "conv2.weight");
  const double bound = 1 / std::sqrt(64. * 25);
  expect_spread(w, bound / std::sqrt(3.));
  for (int64_t i = 0; i < w.size(); ++i) ASSERT_LE(std::abs(w.data<float>()[i]), bound * (1 + 1e-6));
  EXPECT_GT(norm(value_of(*m, "conv2.bias")), 0);
}

TEST(Module, SetTrainingReachesChildren) {
  const auto m = make_model("resnet20", {8, 8, 3, 10});
  int modules = 0, training = 0;
  const auto look = [&](Module& c) { ++modules, training += c.training(); };
  m->each(look);
  EXPECT_GT(modules, 40);
  EXPECT_EQ(training, modules);
  m->set_training(false);
  training = 0;
  m->each(look);
  EXPECT_EQ(training, 0);
}

TEST(Module, EvaluationLeavesStatisticsAloneAndTrainingMovesThem) {
  const auto m = make_model("resnet20", {8, 8, 3, 10});
  const Flat flat = flatten(*m, allocator(kCpu));
  initialize(*m, 1);
  const Tensor before = flat.buffers.clone(), x = random_image({4, 8, 8, 3});
  m->set_training(false);
  m->forward(x);
  EXPECT_EQ(distance(flat.buffers, before), 0);
  m->set_training(true);
  m->forward(x);
  EXPECT_GT(distance(flat.buffers, before), 0.1);
}

}  // namespace
}  // namespace skein::nn
