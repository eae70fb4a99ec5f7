// Layers of models, and what of a step's rate and decay each parameter takes.
#include "nn/rates.h"

#include <gtest/gtest.h>

#include "nn/models.h"

namespace skein::nn {
namespace {

Flat flat_of(const std::string& model) {
  static std::vector<std::unique_ptr<Module>> kept;
  kept.push_back(make_model(model, {.height = 32, .width = 32, .channels = 3, .classes = 10}));
  return flatten(*kept.back(), allocator(kCpu));
}
const Segments::Segment& of(const Flat& flat, const Segments& all, const std::string& name) {
  for (size_t i = 0; i < flat.segments.size(); ++i)
    if (flat.segments[i].name == name) return all.all()[i];
  throw Error("no parameter " + name);
}

TEST(Rates, LayersAreStemBlocksAndHead) {
  const Flat resnet = flat_of("resnet20");
  EXPECT_EQ(resnet.layers, 1 + 9 + 1);
  const auto layer = [&](const std::string& name) {
    for (const Segment& s : resnet.segments)
      if (s.name == name) return s.layer;
    return -1;
  };
  EXPECT_EQ(layer("conv1.weight"), 0);
  EXPECT_EQ(layer("bn1.bias"), 0);
  EXPECT_EQ(layer("layer1.0.conv1.weight"), 1);
  EXPECT_EQ(layer("layer1.0.bn2.weight"), 1);
  EXPECT_EQ(layer("layer3.2.conv2.weight"), 9);
  EXPECT_EQ(layer("fc.bias"), 10);
  EXPECT_EQ(flat_of("vgg16-bn-cifar").layers, 16);
  EXPECT_EQ(flat_of("mlp").layers, 3);
}

TEST(Rates, LayersHeadsAndNormsTakeTheirParts) {
  const Flat flat = flat_of("small-cnn");  // three convolutions and a head
  const Segments all = segments_of(flat, {.layer_decay = 0.5, .head = 3, .norms = 0.25});
  EXPECT_EQ(of(flat, all, "conv1.weight").rate, 0.125f);
  EXPECT_EQ(of(flat, all, "bn1.weight").rate, 0.125f * 0.25f);
  EXPECT_EQ(of(flat, all, "conv3.weight").rate, 0.5f);
  EXPECT_EQ(of(flat, all, "fc.weight").rate, 3);
  EXPECT_EQ(of(flat, all, "fc.bias").rate, 0.75f);
}

TEST(Rates, NormsAndBiasesAreSparedFromDecayAndTheHeadIsNotHidden) {
  const Flat flat = flat_of("small-cnn");
  const Segments spared = segments_of(flat), all = segments_of(flat, {.decay_all = true});
  EXPECT_EQ(of(flat, spared, "conv2.weight").decay, 1);
  EXPECT_EQ(of(flat, spared, "bn2.weight").decay, 0);
  EXPECT_EQ(of(flat, all, "bn2.weight").decay, 1);
  EXPECT_TRUE(of(flat, spared, "conv2.weight").hidden);
  EXPECT_FALSE(of(flat, spared, "fc.weight").hidden);
  EXPECT_FALSE(of(flat, spared, "bn2.weight").hidden);
  EXPECT_EQ(of(flat, spared, "conv2.weight").rows, 32);
  EXPECT_EQ(of(flat, spared, "conv2.weight").columns, 3 * 3 * 16);
  EXPECT_EQ(spared.size(), flat.x.size());
}

}  // namespace
}  // namespace skein::nn
