// Modules, the flat vector, slices of its gradient, initial values, and the models' names and sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "engine/vectors/vec.h"
#include "nn/file_layout.h"
#include "nn/layers.h"
#include "nn/models.h"
#include "nn/vgg.h"

namespace skein::nn {
namespace {

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const BadOption& e) { return e.what(); }
  return "nothing thrown";
}
Tensor counting(Shape s) {
  Tensor t(s);
  for (int64_t i = 0; i < t.size(); ++i) t.data<float>()[i] = float(i);
  return t;
}
double distance(const Tensor& a, const Tensor& b) {
  Tensor d = a.clone();
  axpy(d, -1.f, b);
  return norm(d);
}
Tensor random_image(Shape s, DType t = kF32, uint64_t seed = 1) {
  Tensor x(s, t);
  fill_normal(x, {.seed = seed}, 0, 1);
  return x;
}

// ---- models ----

TEST(Models, HaveTheParametersOfTheirPapers) {
  const std::map<std::pair<std::string, int>, int64_t> known = {{{"cnn7", 3}, 351'946},
                                                                {{"gem-cnn", 1}, 163'790},
                                                                {{"resnet20", 3}, 269'722},
                                                                {{"resnet56", 3}, 853'018},
                                                                {{"resnet50", 3}, 25'557'032},
                                                                {{"resnet18", 3}, 11'689'512},
                                                                {{"resnet34", 3}, 21'797'672},
                                                                {{"vgg16-bn", 3}, 138'365'992},
                                                                {{"resnet18-cifar", 3}, 11'173'962},
                                                                {{"vgg16-bn-cifar", 3}, 15'253'578}};
  for (const auto& [key, count] : known) {
    const auto& [name, channels] = key;
    int64_t side = 28;
    for (const ModelRow& row : models())
      if (name == row.name) side = row.default_size;
    EXPECT_EQ(count_params(*make_model(name, {side, side, channels, side == 224 ? 1000 : 10})), count)
        << name;
  }
}

TEST(Models, HaveTorchvisionsNamesAndShapesInItsOrder) {
  std::ifstream in(std::string(SKEIN_SOURCE_DIR) + "/tests/fixtures/torchvision_names.txt");
  std::map<std::string, std::vector<std::string>> theirs;
  std::string model, kind, name, shape;
  while (in >> model >> kind >> name >> shape) theirs[model + ' ' + kind].push_back(name + ' ' + shape);
  ASSERT_EQ(theirs.size(), 8u);
  const auto line = [](const std::string& n, const Shape& s) {
    std::string all = n;
    for (int i = 0; i < s.rank(); ++i) all += text(i ? 'x' : ' ', s[i]);
    return all;
  };
  for (const char* row : {"resnet18", "resnet34", "resnet50", "vgg16-bn"}) {
    const auto m = make_model(row, {224, 224, 3, 1000});
    std::vector<std::string> params, buffers;
    for (Param* p : m->params()) params.push_back(line(p->name, file_shape(*p)));
    for (Buffer* b : m->buffers()) buffers.push_back(line(b->name, b->value.shape()));
    EXPECT_EQ(params, theirs[std::string(row) + " param"]) << row;
    EXPECT_EQ(buffers, theirs[std::string(row) + " buffer"]) << row;
  }
}

TEST(Models, GiveOneLogitAClassInTheTypeOfTheImageAndFollowItsSize) {
  struct Case {
    std::string name;
    int64_t height, width, channels, classes;
  };
  std::vector<Case> cases = {{"cnn7", 32, 28, 1, 7},
                             {"small-cnn", 28, 28, 1, 10},
                             {"resnet20", 40, 33, 3, 5},
                             {"vgg16-bn-cifar", 64, 32, 3, 4}};
  for (const ModelRow& row : models())
    if (std::string(row.name) != "vgg16-bn")  // its parity test is enough; this test should be quick
      cases.push_back({row.name, row.smallest_size, row.smallest_size, 3, 10});
  for (const Case& c : cases) {
    const auto m = make_model(c.name, {c.height, c.width, c.channels, c.classes});
    const Flat flat = flatten(*m, allocator(kCpu));
    fill_uniform(flat.x, {.seed = 3}, -0.1f, 0.1f);
    fill(flat.buffers, 1.f);
    m->set_training(false);
    for (const DType t : {kF32, kBF16, kF16}) {
      const Tensor y = m->forward(random_image({2, c.height, c.width, c.channels}, t));
      EXPECT_EQ(y.shape(), (Shape{2, c.classes})) << c.name;
      EXPECT_EQ(y.dtype(), t) << c.name;
      EXPECT_TRUE(all_finite(cast(y, kF32))) << c.name << c.height;
    }
  }
}

TEST(Models, RefuseAnUnknownNameWithTheNearestAndASmallImageWithTheLeast) {
  EXPECT_NE(message_of([] {
              make_model("resent50", {224, 224, 3, 10});
            }).find("did you mean resnet50?"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              make_model("vgg16-bn", {28, 28, 1, 10});
            }).find("vgg16-bn needs images of at least 32x32"),
            std::string::npos);
  EXPECT_NE(message_of([] { make_model("cnn7", {32, 23, 3, 10}); }).find("24x24"), std::string::npos);
  EXPECT_EQ(message_of([] { make_model("vgg16_bn_cifar", {32, 32, 3, 10}); }), "nothing thrown");
}

// ---- modules and layers ----

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

TEST(ConvBn, ABiasBeforeTheNormMovesOnlyTheRunningMean) {
  const ConvSpec spec{.in = 3, .out = 4, .padding = 1, .bias = true};
  ConvBn biased("c", "n", spec);
  initialize(biased, 1);
  Tensor bias, mean, variance;
  for (Param* p : biased.params())
    if (p->name == "c.bias") bias = p->value;
  for (Buffer* b : biased.buffers()) (b->name == "n.running_mean" ? mean : variance) = b->value;
  const Tensor x = random_image({8, 6, 6, 3});
  const Tensor plain = biased.forward(x).clone(), plain_mean = mean.clone(),
               plain_variance = variance.clone();

  initialize(biased, 1);
  fill(bias, 5.f);
  EXPECT_EQ(distance(biased.forward(x), plain), 0);
  EXPECT_EQ(distance(variance, plain_variance), 0);
  for (int c = 0; c < 4; ++c) EXPECT_NEAR(mean.data<float>()[c], plain_mean.data<float>()[c] + 0.5f, 1e-5);

  biased.set_training(false);  // in evaluation the two separate operations are the reference
  Tensor weight, gamma, shift;
  for (Param* p : biased.params())
    (p->name == "c.weight"   ? weight
     : p->name == "n.weight" ? gamma
     : p->name == "n.bias"   ? shift
                             : bias) = p->value;
  const Tensor y = batch_norm(conv2d(x, weight, bias, {.padding = 1}), {gamma, shift, mean, variance},
                              {.training = false, .relu = true});
  EXPECT_LT(distance(biased.forward(x), y), 1e-4 * norm(y));
}

TEST(Dropout, OfChannelsDropsWholeChannels) {
  Dropout d(0.5f, Dropout::Of::kChannels);
  const Tensor ones({4, 3, 5, 16});
  fill(ones, 1.f);
  const RandomScope scope(1, 0, 0);
  const Tensor y = d.forward(ones);
  int dropped = 0;
  for (int n = 0; n < 4; ++n)
    for (int c = 0; c < 16; ++c) {
      const float first = y.data<float>()[n * 15 * 16 + c];
      EXPECT_TRUE(first == 0 || first == 2) << first;
      dropped += first == 0;
      for (int p = 0; p < 15; ++p) EXPECT_EQ(y.data<float>()[(n * 15 + p) * 16 + c], first);
    }
  EXPECT_GT(dropped, 16);
  EXPECT_LT(dropped, 48);
  d.set_training(false);
  EXPECT_EQ(distance(d.forward(ones), ones), 0);
}

TEST(AdaptivePool, AveragesTorchvisionsWindowsForAnyMap) {
  for (const auto& [h, w] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 2}, {7, 7}, {14, 14}, {5, 9}, {15, 8}}) {
    const Tensor x = random_image({2, h, w, 3}), y = adaptive_avg_pool(x, 7);
    ASSERT_EQ(y.shape(), (Shape{2, 7, 7, 3}));
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t p = 0; p < 7; ++p)
        for (int64_t q = 0; q < 7; ++q)
          for (int64_t c = 0; c < 3; ++c) {
            double sum = 0, count = 0;
            for (int64_t r = p * h / 7; r < (p + 1) * double(h) / 7; ++r)
              for (int64_t s = q * w / 7; s < (q + 1) * double(w) / 7; ++s, ++count)
                sum += x.data<float>()[((n * h + r) * w + s) * 3 + c];
            EXPECT_NEAR(y.data<float>()[((n * 7 + p) * 7 + q) * 3 + c], sum / count, 1e-5) << h << 'x' << w;
          }
  }
}

// ---- layouts ----

TEST(FileLayout, ConvolutionGoesFromOhwiToOihwAndBack) {
  Conv2d conv({.in = 2, .out = 3, .kernel = 5});
  Param& p = *conv.params()[0];
  const Tensor ours = counting({3, 5, 5, 2}), file = to_file(p, ours);
  ASSERT_EQ(file.shape(), (Shape{3, 2, 5, 5}));
  for (int o = 0; o < 3; ++o)
    for (int i = 0; i < 2; ++i)
      for (int r = 0; r < 5; ++r)
        for (int s = 0; s < 5; ++s)
          EXPECT_EQ(file.data<float>()[((o * 2 + i) * 5 + r) * 5 + s], float(((o * 5 + r) * 5 + s) * 2 + i));
  const Tensor back(ours.shape());
  from_file(p, file, back);
  EXPECT_EQ(distance(back, ours), 0);
}

// The same linear layer computed as torchvision does, over C H W. Fails if the two
// orders are confused anywhere.
TEST(FileLayout, FirstLinearAfterAMapReadsChannelsFirstInAFile) {
  constexpr int64_t kH = 2, kW = 3, kC = 5, kOut = 4;
  Linear fc(kH * kW * kC, kOut);
  fc.from_map(kH, kW, kC);
  initialize(fc, 1);
  Param& p = *fc.params()[0];
  const Tensor x = random_image({1, kH, kW, kC}), y = fc.forward(flatten_map(x)), file = to_file(p, p.value);
  ASSERT_EQ(file.shape(), (Shape{kOut, kC * kH * kW}));
  EXPECT_GT(distance(file, p.value), 0.1);
  for (int64_t o = 0; o < kOut; ++o) {
    double sum = fc.params()[1]->value.data<float>()[o];
    for (int64_t c = 0; c < kC; ++c)
      for (int64_t h = 0; h < kH; ++h)
        for (int64_t w = 0; w < kW; ++w)
          sum += double(file.data<float>()[((o * kC + c) * kH + h) * kW + w]) *
                 x.data<float>()[(h * kW + w) * kC + c];
    EXPECT_NEAR(y.data<float>()[o], sum, 1e-5);
  }
  const Tensor back(p.value.shape());
  from_file(p, file, back);
  EXPECT_EQ(distance(back, p.value), 0);
}

TEST(FileLayout, EveryFirstLinearAfterAMapIsMarked) {
  for (const ModelRow& row : models()) {
    const int64_t side = std::max<int64_t>(row.smallest_size, 28);
    const auto m = row.make({side, side, 3, 10});
    int marked = 0;
    for (Param* p : m->params()) marked += p->file == FileLayout::kLinearFromMap;
    EXPECT_EQ(marked,
              std::string(row.name).starts_with("resnet") || std::string(row.name) == "small-cnn" ? 0 : 1)
        << row.name;
  }
}

}  // namespace
}  // namespace skein::nn
