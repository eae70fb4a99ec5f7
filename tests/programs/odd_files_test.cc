// Odd image files in the whole program: they are trained on or left out, and counted exactly in summary.json.
#include "apps/setup/odd_files.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/model_files.h"
#include "tests/support/program.h"

namespace skein::apps {
namespace {

using testing_programs::Ended;
using testing_programs::expect_fine;
using testing_programs::summary_of;
using testing_programs::Workplace;

// What `make_image_folder --odd` adds to each of train/ and val/.
const Json kWritten = {{"converted",
                        {{"files", 7},
                         {"cmyk", 1},
                         {"gray", 1},
                         {"16-bit", 1},
                         {"palette", 1},
                         {"transparent", 1},
                         {"misnamed", 2}}},
                       {"left_out", {{"files", 5}, {"empty", 1}, {"truncated", 2}, {"undecodable", 2}}}};
const Json kAll = {{"train", kWritten}, {"test", kWritten}};

const std::string kMake = SKEIN_BINARY_DIR "/make_image_folder";
const std::string kOddTrain =
    "$TRAIN --data imagefolder:d --model small-cnn --image-size 28 --batch-size 16 --output out ";

TEST(OddFiles, OfARunAreCountedExactlyAndOnce) {
  const Workplace w;
  expect_fine(w.run(kMake + " d --per-class 6 --odd"));
  const Ended e = w.run(kOddTrain + "--epochs 2");
  expect_fine(e);
  const Json s = summary_of(w, "out");
  EXPECT_EQ(s["odd_files"], kAll) << s["odd_files"].dump(1);
  EXPECT_EQ(s["unreadable"], 10);
  EXPECT_EQ(s["unreadable_names"].size(), 10u);
  EXPECT_NE(s["unreadable_names"][0].get<std::string>().find("d/train/T-shirt-top/bad-"), std::string::npos);
  EXPECT_NE(e.out.find("14 converted (2 cmyk, 2 gray, 2 16-bit, 2 palette, 2 transparent, 4 misnamed), "
                       "10 skipped (2 empty, 4 truncated, 4 undecodable)"),
            std::string::npos)
      << e.out;
  EXPECT_NE(e.out.find("the index is made by scanning"), std::string::npos) << e.out;
  for (const char* stage : {"read", "decode", "resize"}) EXPECT_GT(s["seconds_by_stage"][stage], 0) << stage;
  EXPECT_EQ(s["seconds_by_stage"]["jitter"], 0);
  const Ended score = w.run(
      "$TRAIN --data imagefolder:d --model small-cnn --image-size 28 --eval-only --weights "
      "out/model.safetensors");
  expect_fine(score);
  EXPECT_NE(score.out.find("unusual files: 7 converted"), std::string::npos) << score.out;
}

// Half an epoch, then the other half by a resumed run; then workers that each see a part.
TEST(OddFiles, AreCountedOverResumesAndWorkers) {
  const Workplace w;
  expect_fine(w.run(kMake + " d --per-class 6 --odd"));
  expect_fine(w.run(kOddTrain + "--steps 2 --color-jitter 0.4"));
  const Json half = summary_of(w, "out")["odd_files"]["train"];
  EXPECT_NE(half, kWritten);
  expect_fine(w.run("$TRAIN --resume out --steps 5"));  // 74 images
  EXPECT_EQ(summary_of(w, "out")["odd_files"], kAll) << summary_of(w, "out")["odd_files"].dump(1);
  EXPECT_GT(summary_of(w, "out")["seconds_by_stage"]["jitter"], 0);
  for (const std::string transport : {"shared", "local"}) {
    expect_fine(w.run("rm -r out; " + kOddTrain +
                      "--workers 3 --algorithm allreduce --epochs 1 --transport " + transport));
    EXPECT_EQ(summary_of(w, "out")["odd_files"], kAll)
        << transport << summary_of(w, "out")["odd_files"].dump(1);
  }
}

// 74 images, 5 of them unreadable, in steps of 24: the training does not depend on which worker has them.
TEST(OddFiles, LeaveTheOthersTheirWeightWhoeverHasThem) {
  const Workplace w;
  expect_fine(w.run(kMake + " d --per-class 6 --odd"));
  const std::string flags =
      "$TRAIN --data imagefolder:d --model mlp --image-size 28 --algorithm allreduce --lr 0.05 "
      "--reference-batch 0 "
      "--lr-schedule constant --warmup-epochs 0 --augment none --epochs 2 --threads 1 --transport local ";
  expect_fine(w.run(flags + "--batch-size 24 --output whole"));
  const Json whole = Json::parse(w.read("whole/summary.json"));
  EXPECT_EQ(whole["odd_files"]["train"]["left_out"]["files"], 5);
  for (const std::string way : {"--batch-size 24 --accumulate 5", "--workers 2 --batch-size 12",
                                "--workers 6 --batch-size 4", "--workers 3 --batch-size 8 --accumulate 2"}) {
    expect_fine(w.run("rm -rf out; " + flags + "--output out " + way));
    EXPECT_LT(testing_programs::models_differ(w.path() / "whole", w.path() / "out"), 1e-6) << way;
    EXPECT_NEAR(summary_of(w, "out")["loss"].get<double>(), whole["loss"].get<double>(), 1e-5) << way;
  }
}

TEST(OddFiles, InTarShardsAreCountedTheSame) {
  const Workplace w;
  expect_fine(w.run(kMake + " d --per-class 6 --odd --tar --per-shard 25"));
  const Ended e = w.run(
      "$TRAIN --data 'webdataset:d/train-{000000..000002}.tar,val=d/val-*.tar' --model small-cnn "
      "--image-size 28 "
      "--batch-size 16 --output out --workers 2 --algorithm allreduce --epochs 1");
  expect_fine(e);
  EXPECT_EQ(summary_of(w, "out")["odd_files"], kAll) << summary_of(w, "out")["odd_files"].dump(1);
  EXPECT_NE(e.out.find("73 training and 23 test images of 10 classes"), std::string::npos) << e.out;
  EXPECT_NE(e.out.find("73 samples in 3 shards"), std::string::npos) << e.out;
  EXPECT_NE(w.read("out/summary.json").find("train-000002.tar: bad-empty.png"), std::string::npos);
}

// Names come from outside: the terminal must show them, not obey them.
TEST(OddFiles, AreNamedWithTheirReasonAndCannotSteerTheTerminal) {
  const Workplace w;
  expect_fine(w.run(kMake + " d --per-class 2"));
  w.write("d/train/Bag/evil\x1b[2J.jpg", "RIFF1234WEBPVP8 ");
  const Ended e = w.run(kOddTrain + "--epochs 1");
  expect_fine(e);
  EXPECT_NE(e.out.find("skipped, cannot be read: d/train/Bag/evil\\x1b[2J.jpg: WebP, not JPEG or PNG\n"),
            std::string::npos)
      << e.out;
  EXPECT_EQ(e.out.find('\x1b'), std::string::npos);
  const Ended p = w.run("$TRAIN --predict d/train/Bag --weights out/model.safetensors");
  EXPECT_EQ(p.status, 1);
  EXPECT_NE(p.err.find("evil\\x1b[2J.jpg: cannot be read: WebP, not JPEG or PNG\n"), std::string::npos)
      << p.err;
  EXPECT_EQ((p.out + p.err).find('\x1b'), std::string::npos);
}

TEST(OddFiles, AFileThatChangesItsMindCountsOnce) {
  data::Census c;
  c.add(7, data::kGray | data::kMisnamed);
  c.add(7, data::kTruncated);
  c.add(7, data::kUnopenable);
  c.add(9, 0);
  c.add(3, data::kCmyk | data::kMisnamed);
  EXPECT_EQ(c.files().size(), 2u);
  EXPECT_EQ(c.left_out(), 1);
  EXPECT_EQ(c.converted(), 1);
  EXPECT_EQ(c.count(data::kTruncated), 1);
  for (const data::Odd none : {data::kUnopenable, data::kGray, data::kEmpty})
    EXPECT_EQ(c.count(none), 0) << none;
  EXPECT_EQ(c.count(data::kMisnamed), 1);
  EXPECT_EQ(data::Census::unpack(c.pack()).files(), c.files());
  const OddFiles both{c, {}};
  EXPECT_EQ(OddFiles::unpack(both.pack()).train.files(), c.files());
  EXPECT_TRUE(OddFiles::unpack(both.pack()).test.empty());
  for (const char* bad : {"3", "3:", "3:1,", "x:1", "3:1;4", "3:70000", "-1:1", ",3:1"})
    EXPECT_THROW(data::Census::unpack(bad), BadFile) << bad;
}

TEST(MakeImageFolder, WritesIntoANewOrEmptyFolderOnly) {
  const Workplace w;
  w.write("used/train/geese/1.jpg", "");
  const Ended refused = w.run(kMake + " used");
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("used: is not empty"), std::string::npos) << refused.err;
  EXPECT_FALSE(w.has("used/val"));
  expect_fine(w.run("mkdir empty && " + kMake + " empty --per-class 1"));
  EXPECT_TRUE(w.has("empty/val/Bag"));
  const Ended of_files = w.run(kMake + " again --data imagefolder:empty");
  EXPECT_EQ(of_files.status, 2) << of_files.err;
  EXPECT_NE(of_files.err.find("files of sizes of their own already"), std::string::npos) << of_files.err;
}

TEST(MakeImageFolder, ExplainsItself) {
  const Workplace w;
  const Ended help = w.run(kMake + " --help");
  EXPECT_EQ(help.status, 0) << help.err;
  EXPECT_EQ(help.out.find("usage: make_image_folder DIRECTORY"), 0u) << help.out;
  for (const std::string wrong : {"", "a b", "--per-class", "a --per-class none", "--nosuch"}) {
    const Ended e = w.run(kMake + " " + wrong);
    EXPECT_EQ(e.status, 2) << wrong;
    EXPECT_EQ(e.err.find("make_image_folder: "), 0u) << e.err;
  }
}

}  // namespace
}  // namespace skein::apps
