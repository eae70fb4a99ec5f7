// Users' work with weights, through the program: fine-tuning on other classes, prediction, export.
#include <gtest/gtest.h>

#include "apps/model/safetensors.h"
#include "tests/support/files.h"
#include "tests/support/program.h"
#include "tests/support/random_model.h"

namespace skein::apps {
namespace {

using testing::has;
using testing_programs::Ended;
using testing_programs::Workplace;

const std::string kWeightsTrain = "$TRAIN --model small-cnn --batch-size 16 --no-nesterov ";
const std::string kSynthetic = kWeightsTrain + "--data synthetic:16x16x3,classes=10,train=160,test=40 ";
const std::string kFrozen = "--steps 1 --lr 0 --weight-decay 0 ";  // the output equals the input

TensorFile model_of(const Workplace& w, const std::string& run) {
  return read_safetensors(w.path() / run / "model.safetensors");
}
bool equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && 0 == memcmp(a.raw(), b.raw(), size_t(a.bytes()));
}

TEST(FineTuning, OnOtherClassesKeepsAllButTheClassifierAndSaysSo) {
  const Workplace w;
  testing::write_folder(w.path() / "photos", {"ducks", "geese", "swans"});
  ASSERT_EQ(w.run(kSynthetic + "--steps 5 --output ten").status, 0);
  const Ended e =
      w.run(kWeightsTrain + kFrozen + "--data imagefolder:photos --image-size 16 --output three --weights " +
            "ten/model.safetensors");
  ASSERT_EQ(e.status, 0) << e.err;
  EXPECT_TRUE(has(e.out,
                  "ten/model.safetensors: was made for 10 classes, the data have 3; the classifier (fc) is "
                  "initialized from the seed"))
      << e.out;
  const TensorFile ten = model_of(w, "ten"), three = model_of(w, "three");
  for (const auto& [name, t] : ten.tensors)
    EXPECT_TRUE(!name.ends_with("weight") || name.starts_with("fc") || equal(t, *three.find(name))) << name;
  EXPECT_EQ(three.find("fc.weight")->shape(), (Shape{3, 64}));
  EXPECT_EQ(three.metadata.at("classes"), R"(["ducks","geese","swans"])");
  // The new classifier comes from the seed, like that of training without weights.
  ASSERT_EQ(
      w.run(kWeightsTrain + kFrozen + "--data imagefolder:photos --image-size 16 --output fresh").status, 0);
  EXPECT_TRUE(equal(*three.find("fc.weight"), *model_of(w, "fresh").find("fc.weight")));
}

TEST(FineTuning, KeepsAClassifierThatFits) {
  const Workplace w;
  ASSERT_EQ(w.run(kSynthetic + "--steps 3 --output one").status, 0);
  const Ended e = w.run(kSynthetic + kFrozen + "--output two --weights one/model.safetensors");
  ASSERT_EQ(e.status, 0) << e.err;
  EXPECT_TRUE(has(e.out, "weights from one/model.safetensors")) << e.out;
  EXPECT_TRUE(equal(*model_of(w, "one").find("fc.weight"), *model_of(w, "two").find("fc.weight")));
}

TEST(FineTuning, OnAsManyClassesOfOtherNamesTakesANewClassifierButDoesNotEvaluate) {
  const Workplace w;
  testing::write_folder(w.path() / "birds", {"ducks", "geese"});
  testing::write_folder(w.path() / "trees", {"elms", "oaks"});
  const std::string size = "--image-size 16 ";
  ASSERT_EQ(w.run(kWeightsTrain + size + "--data imagefolder:birds --steps 1 --output birds_run").status, 0);
  const std::string on_trees =
      kWeightsTrain + size + "--data imagefolder:trees --weights birds_run/model.safetensors ";
  const Ended e = w.run(on_trees + kFrozen + "--output trees_run");
  ASSERT_EQ(e.status, 0) << e.err;
  EXPECT_TRUE(
      has(e.out, "number 0 is 'ducks' there and 'elms' in the data; the classifier (fc) is initialized"))
      << e.out;
  EXPECT_FALSE(
      equal(*model_of(w, "birds_run").find("fc.weight"), *model_of(w, "trees_run").find("fc.weight")));
  const Ended score = w.run(on_trees + "--eval-only");
  EXPECT_EQ(score.status, 1);
  EXPECT_TRUE(has(score.err, "'ducks' there and 'elms'")) << score.err;
}

TEST(Onnx, IsWrittenAtTheEndOfTrainingAsOfTheFileAlone) {
  const Workplace w;
  const Ended e = w.run(kSynthetic + "--steps 2 --output out --export-onnx a.onnx");
  ASSERT_EQ(e.status, 0) << e.err;
  EXPECT_TRUE(has(e.out, "a.onnx")) << e.out;
  const Ended alone = w.run("$TRAIN --weights out/model.safetensors --export-onnx b.onnx");
  ASSERT_EQ(alone.status, 0) << alone.err;
  EXPECT_GT(w.read("a.onnx").size(), 90000u);
  EXPECT_EQ(w.read("a.onnx"), w.read("b.onnx"));
  EXPECT_EQ(w.run("$TRAIN --weights out/model.safetensors --export-onnx nowhere/b.onnx").status, 1);
}

}  // namespace
}  // namespace skein::apps
