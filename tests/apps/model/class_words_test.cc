// How classes are named at the start.
#include "apps/model/class_words.h"

#include <gtest/gtest.h>

#include "tests/support/program.h"

namespace skein::apps {
namespace {

using testing_programs::Ended;
using testing_programs::expect_fine;
using testing_programs::Workplace;

const std::string kMake = SKEIN_BINARY_DIR "/make_image_folder";
const std::string kTrain =
    "$TRAIN --data imagefolder:d --model small-cnn --image-size 28 --batch-size 16 --output out ";

TEST(Classes, AreNamedAtTheStartWithThoseThatASplitLacks) {
  const Workplace w;
  expect_fine(w.run(kMake + " d --per-class 2 && rm -r d/val/Bag d/val/Sneaker"));
  const Ended e = w.run(kTrain + "--epochs 1");
  expect_fine(e);
  EXPECT_NE(e.out.find("\nclasses: Ankle-boot, Bag, Coat, "), std::string::npos) << e.out;
  EXPECT_NE(
      e.out.find("\nwarning: no test images of 2 of the 10 classes, so the accuracy says nothing about them: "
                 "Bag, Sneaker\n"),
      std::string::npos)
      << e.out;
}

TEST(Classes, OfManyTheFirstAreNamedAndHowManyThereAre) {
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back(text("class", i));
  EXPECT_EQ(list_names(names, 20), "class0, class1, ... (1000 in all)");
  EXPECT_EQ(list_names(names, 1), "class0, ... (1000 in all)");
  EXPECT_EQ(list_names({"a", "b"}, 4), "a, b");
  EXPECT_EQ(list_names({"a\nb", "c"}, 20), "a\\x0ab, c");
}

}  // namespace
}  // namespace skein::apps
