// The table of models: their parameters, names, shapes and what they refuse.
#include "nn/models.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "engine/vectors/vec.h"
#include "nn/file_layout.h"
#include "nn/layers.h"
#include "nn/vgg.h"
#include "tests/support/images.h"

namespace skein::nn {
namespace {

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const BadOption& e) { return e.what(); }
  return "nothing thrown";
}

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
  std::ifstream in(SKEIN_SOURCE_DIR "/tests/fixtures/torchvision_names.txt");
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
            }).find("vgg16-bn: needs images of at least 32x32"),
            std::string::npos);
  EXPECT_NE(message_of([] { make_model("cnn7", {32, 23, 3, 10}); }).find("24x24"), std::string::npos);
  EXPECT_EQ(message_of([] { make_model("vgg16_bn_cifar", {32, 32, 3, 10}); }), "nothing thrown");
}

}  // namespace
}  // namespace skein::nn
