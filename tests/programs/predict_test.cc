// Predictions by the program.
#include "apps/model/predict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/model/vectors.h"
#include "apps/model/weights.h"
#include "tests/support/files.h"
#include "tests/support/program.h"
#include "tests/support/random_model.h"

namespace skein::apps {
namespace {

using testing::has;
using testing_programs::Ended;
using testing_programs::Workplace;

const std::string kPredictTrain = "$TRAIN --model small-cnn --batch-size 16 --no-nesterov ";

// Prediction must agree with evaluation of the same pictures from the same file, without further flags.
TEST(Predict, NamesTheClassesThatEvaluationCounts) {
  const Workplace w;
  testing::write_folder(w.path() / "photos", {"ducks", "geese", "swans"});
  ASSERT_EQ(w.run(kPredictTrain + "--data imagefolder:photos --image-size 16 --steps 6 --output out").status,
            0);
  const Ended eval = w.run("$TRAIN --eval-only --data imagefolder:photos --weights out/model.safetensors");
  ASSERT_EQ(eval.status, 0) << eval.err;
  const Ended e =
      w.run("$TRAIN --predict photos/val --weights out/model.safetensors --json --top 2 --batch-size 5");
  ASSERT_EQ(e.status, 0) << e.err;
  std::istringstream lines(e.out);
  int right = 0, all = 0;
  for (std::string line; std::getline(lines, line); ++all) {
    const auto j = nlohmann::json::parse(line);
    ASSERT_EQ(j["classes"].size(), 2u);
    right += has(j["file"], "/" + j["classes"][0]["name"].get<std::string>() + "/");
    EXPECT_GE(j["classes"][0]["probability"], j["classes"][1]["probability"]);
  }
  EXPECT_EQ(all, 12);
  char top1[32];
  snprintf(top1, sizeof top1, "top-1 %.2f %%", 100.0 * right / all);
  EXPECT_TRUE(has(eval.out, top1)) << eval.out << top1;
}

TEST(Predict, PrintsATableAndNamesWhatItCannotRead) {
  const Workplace w;
  ASSERT_EQ(
      w.run(kPredictTrain + "--data synthetic:12x12x1,classes=3,train=64,test=10 --steps 1 --output out")
          .status,
      0);
  testing::write_pictures(w.path() / "some", 2, 30, 1);
  w.write("some/bad.jpg", "not a picture");
  w.write("some/.hidden.png", "x");
  w.write("some/notes.txt", "x");
  const Ended e =
      w.run("$TRAIN --predict some some/0.png --top 9 --weights out/model.safetensors --logits l.npy");
  EXPECT_EQ(e.status, 1);
  EXPECT_EQ(e.err, "train_imagenet: some/bad.jpg: cannot be read: neither JPEG nor PNG\n");
  EXPECT_EQ(std::count(e.out.begin(), e.out.end(), '\n'), 3) << e.out;
  EXPECT_EQ(std::count(e.out.begin(), e.out.end(), '%'), 9) << e.out;
  const Vectors logits = read_vectors(w.path() / "l.npy");
  EXPECT_EQ(logits.items[0].shape, (std::vector<int64_t>{3, 3}));
  for (int i = 0; i < 3; ++i)  // the first picture was given twice
    EXPECT_EQ(logits.flat.data<float>()[i], logits.flat.data<float>()[6 + i]);
  EXPECT_EQ(w.run("$TRAIN --predict some/1.png --weights out/model.safetensors").status, 0);
}

TEST(Predict, OfAFileThatSaysNothingAsksForTheModelAndSaysWhatItAssumes) {
  const Workplace w;
  testing::write_pictures(w.path() / "some", 1, 40, 1);
  const auto net = testing::random_model("small-cnn", {32, 32, 3, 4}, 3);
  export_model(w.path() / "bare", *net, {.model = "", .classes = {}, .steps = 0, .more = {}});
  TensorFile bare = read_safetensors(w.path() / "bare");
  bare.metadata.clear();
  write_safetensors(w.path() / "bare.safetensors", bare);
  const Ended none = w.run("$TRAIN --predict some --weights bare.safetensors");
  EXPECT_EQ(none.status, 2);
  EXPECT_TRUE(has(none.err, "give --model")) << none.err;
  const Ended e = w.run("$TRAIN --predict some --weights bare.safetensors --model small-cnn --image-size 32");
  EXPECT_EQ(e.status, 0) << e.err;
  EXPECT_TRUE(has(e.err, "32x32 and ImageNet's normalization are assumed")) << e.err;
  const Ended other = w.run("$TRAIN --predict some --weights bare.safetensors --model vgg16-bn-cifar");
  EXPECT_EQ(other.status, 1);
  EXPECT_TRUE(has(other.err, "holds no classifier classifier.6.weight of --model vgg16-bn-cifar"))
      << other.err;
}

TEST(Predict, RefusesWhatMakesNoSense) {
  const Workplace w;
  w.write("m.pth", std::string("PK\3\4\0\0\x08\x08", 8) + "rest");
  const std::pair<const char*, const char*> lines[] = {
      {"$TRAIN --predict a.png", "--predict needs --weights"},
      {"$TRAIN --predict a.png --weights m --top 0", "--top"},
      {"$TRAIN --predict a.png --weights m --eval-only", "--eval-only does not go with --predict"},
      {"$TRAIN --predict a.png --weights m --logits l.txt", "l.txt"},
      {"$TRAIN --predict m.pth --weights m.pth --logits no/l.npy", "no/l.npy: this file cannot be made"},
      {"$TRAIN --json", "--json goes with --predict"},
      {"$TRAIN --predict nowhere --weights m", "nowhere: no such file"},
      {"$TRAIN --predict m.pth --weights m.pth", "tools/convert_weights m.pth m.safetensors"}};
  for (const auto& [line, says] : lines) {
    const Ended e = w.run(line);
    EXPECT_NE(e.status, 0) << line;
    EXPECT_TRUE(has(e.err, says)) << line << '\n' << e.err;
    EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
  }
}

}  // namespace
}  // namespace skein::apps
