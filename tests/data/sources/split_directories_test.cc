// Which subdirectories of an image folder are for training and for testing.
#include "data/sources/split_directories.h"

#include <set>

#include "tests/support/data_files.h"
#include "tests/support/pictures.h"

namespace skein::data {
namespace {

TEST(SplitDirectories, OneLevelKeepsATenthOfEachClassWhateverTheSeed) {
  const TemporaryDirectory d;
  const Bytes png = png_bytes({2, 2, 3, Bytes(12)});
  for (int i = 0; i < 57; ++i) d.write(text("many/", i, ".png"), png);
  for (int i = 0; i < 3; ++i) d.write(text("few/", i, ".png"), png);
  d.write("single/0.png", png);
  std::vector<std::set<std::string>> tests;
  for (const uint64_t seed : {1, 2}) {
    const Split split = open_data("imagefolder:" + d.path(), seed);
    EXPECT_EQ(split.train->size(), 57 + 3 + 1 - 6);
    std::set<std::string> names, testing;
    std::vector<int> per_class(3);
    for (int64_t i = 0; i < split.train->size(); ++i) names.insert(split.train->name(i));
    for (int64_t i = 0; i < split.test->size(); ++i) {
      names.insert(split.test->name(i)), testing.insert(split.test->name(i));
      ++per_class[size_t(split.test->label(i))];
    }
    EXPECT_EQ(names.size(), 61u);  // no file is lost or in both
    EXPECT_EQ(per_class, (std::vector<int>{1, 5, 0}));
    tests.push_back(testing);
  }
  EXPECT_EQ(tests[0], tests[1]);
}

TEST(SplitDirectories, AreKnownByAnyOfTheirUsualNames) {
  const Bytes image = jpeg_bytes(waves(8, 8, 3));
  for (const char* train : {"train", "training", "Training"})
    for (const char* test : {"val", "valid", "validation", "test", "Testing"}) {
      const TemporaryDirectory d;
      write_split(d, train, image), write_split(d, test, image);
      const Split split = open_data("imagefolder:" + d.path() + "/", 0);
      EXPECT_EQ(split.train->classes(), (std::vector<std::string>{"cat", "dog"})) << train << ' ' << test;
      EXPECT_EQ(split.train->name(0), d / (train + std::string("/cat/a.jpg")));
      EXPECT_EQ(split.test->name(0), d / (test + std::string("/cat/a.jpg")));
      EXPECT_EQ(split.notes.size(), 2u);
    }
}

TEST(SplitDirectories, SaysWhichDirectoryIsNotUsedAndRefusesTwoOfOneMeaning) {
  const Bytes image = jpeg_bytes(waves(8, 8, 3));
  const TemporaryDirectory d;
  for (const char* name : {"train", "valid", "test"}) write_split(d, name, image);
  const Split split = open_data("imagefolder:" + d.path(), 0);
  EXPECT_EQ(split.test->name(0), d / "valid/cat/a.jpg");
  expect_says(split.notes.at(0), {d.path(), "training on train/", "testing on valid/", "not used: test"});
  write_split(d, "Training", image);
  expect_says(message_of<BadFile>([&] { open_data("imagefolder:" + d.path(), 0); }),
              {"both train/ and Training/", "Rename or remove"});
}

TEST(SplitDirectories, WarnsWhereClassesLookLikeSplits) {
  const Bytes image = jpeg_bytes(waves(8, 8, 3));
  const TemporaryDirectory d, nested;
  write_split(d, "part1", image), write_split(d, "part2", image);
  expect_says(open_data("imagefolder:" + d.path(), 0).notes.back(),
              {"warning", "part1, part2", "the same directories (cat, dog)", "train/CLASS"});
  nested.write("cat/old/a.jpg", image), nested.write("cat/new/a.jpg", image);
  nested.write("dog/old/a.jpg", image), nested.write("dog/a.jpg", image);
  EXPECT_EQ(open_data("imagefolder:" + nested.path(), 0).notes.size(), 1u);
}

}  // namespace
}  // namespace skein::data
