// Whether a resumed run has the same images.
#include "apps/checkpoint/data_index.h"

#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/program.h"

namespace skein::apps {
namespace {

using testing::has;
using testing_programs::Ended;
using testing_programs::expect_fine;
using testing_programs::Workplace;

TEST(Resume, SaysThatTheImagesHaveChanged) {
  const Workplace w;
  expect_fine(w.run(SKEIN_BINARY_DIR "/make_image_folder d --per-class 12"));
  const std::string train =
      "$TRAIN --model mlp --image-size 12 --batch-size 8 --epochs 1 --data imagefolder:";
  expect_fine(w.run(train + "d --output split && " + train + "d/train --output flat"));
  const Ended same = w.run("mv d e && $TRAIN --resume split --data imagefolder:e --epochs 2");
  expect_fine(same);
  EXPECT_FALSE(has(same.out, "images 120 ->") || has(same.out, "not the same ones")) << same.out;
  expect_fine(
      w.run("mv e d; cp $(ls d/train/Bag/*.jpg | head -1) d/train/Bag/new.jpg; "
            "mv $(ls d/val/Coat/* | head -1) d/val/Bag/new.jpg"));
  const Ended more = w.run("$TRAIN --resume split --data imagefolder:d --epochs 3");
  expect_fine(more);
  EXPECT_TRUE(has(more.out, "changed since: training images 120 -> 121\n")) << more.out;
  EXPECT_TRUE(has(more.out, "changed since: test images, 20 as before, but not the same ones\n")) << more.out;
  EXPECT_FALSE(has(more.out, "the tenth kept for testing")) << more.out;
  const Ended flat = w.run("$TRAIN --resume flat --epochs 2");
  expect_fine(flat);
  EXPECT_TRUE(has(flat.out, "changed since: training images 110 -> 111\n")) << flat.out;
  EXPECT_TRUE(has(flat.out, "the tenth kept for testing is chosen among all files")) << flat.out;
}

TEST(Resume, OfACheckpointThatDoesNotSayWhichImagesItHadIsSilent) {
  const data::Split none;
  EXPECT_TRUE(changes_since({}, {{3, "a"}, {4, "b"}}, none).empty());
}

}  // namespace
}  // namespace skein::apps
