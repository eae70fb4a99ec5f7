// CIFAR files: good ones are read, bad ones are refused with a message.
#include "tests/support/data_files.h"

namespace skein::data {
namespace {

// Records of label bytes and planes; pixel p of plane c is planes[c * 1024 + p].
Bytes cifar(const std::vector<Bytes>& labels, uint64_t step) {
  Bytes b;
  for (size_t i = 0; i < labels.size(); ++i) {
    b.insert(b.end(), labels[i].begin(), labels[i].end());
    const Bytes planes = noise(3072, step + i);
    b.insert(b.end(), planes.begin(), planes.end());
  }
  return b;
}

TEST(Cifar, ReadsPlanesIntoPixelsInTheOrderOfTheFiles) {
  const TemporaryDirectory d;
  for (int f = 1; f <= 5; ++f)
    d.write(text("cifar-10-batches-bin/data_batch_", f, ".bin"),
            cifar({{uint8_t(f)}, {uint8_t(f + 4)}}, uint64_t(10 * f)));
  d.write("cifar-10-batches-bin/test_batch.bin", cifar({{0}}, 100));
  for (const std::string& path : {d.path(), d / "cifar-10-batches-bin"}) {
    const Split split = open_data("cifar10:" + path, 0);
    ASSERT_EQ(split.train->size(), 10);
    EXPECT_EQ(split.test->size(), 1);
    EXPECT_EQ(split.train->label(5), 7);
    expect_says(split.train->name(5), {"item 1", "data_batch_3.bin"});
    const Bytes planes = noise(3072, 31), pixels = pixels_at(*split.train, 5);
    for (size_t p = 0; p < 1024; ++p)
      for (size_t c = 0; c < 3; ++c) ASSERT_EQ(pixels[p * 3 + c], planes[c * 1024 + p]);
  }
}

TEST(Cifar, TakesTheFineOfAHundredLabels) {
  const TemporaryDirectory d;
  d.write("train.bin", cifar({{19, 99}, {3, 0}}, 1));
  d.write("test.bin", cifar({{1, 42}}, 5));
  Split split = open_data("cifar100:" + d.path(), 0);
  EXPECT_EQ(split.train->label(0), 99);
  EXPECT_EQ(split.test->label(0), 42);
  EXPECT_EQ(split.train->classes()[42], "42");
  const std::string names = "apple\nbear\n";
  d.write("fine_label_names.txt", Bytes(names.begin(), names.end()));
  split = open_data("cifar100:" + d.path(), 0);
  EXPECT_EQ(split.train->classes()[1], "bear");
  EXPECT_EQ(split.train->classes().size(), 100u);
}

TEST(Cifar, RefusesMissingTruncatedAndMislabeledFiles) {
  const TemporaryDirectory d;
  const auto error = [&] { return message_of<BadFile>([&] { open_data("cifar100:" + d.path(), 0); }); };
  d.write("test.bin", cifar({{1, 1}}, 5));
  expect_says(error(), {d.path(), "holds no train.bin", "www.cs.toronto.edu"});
  Bytes bytes = cifar({{0, 1}, {0, 2}}, 1);
  bytes.pop_back();
  d.write("train.bin", bytes);
  expect_says(error(), {d / "train.bin", "truncated", "3074"});
  d.write("train.bin", cifar({{0, 1}, {0, 100}}, 1));
  expect_says(error(), {"label 100", "item 1", "train.bin", "0 to 99"});
  d.write("train.bin", {});
  expect_says(error(), {d / "train.bin", "empty"});
}

}  // namespace
}  // namespace skein::data
