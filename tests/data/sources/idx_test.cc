// IDX files: good ones are read, bad ones are refused with a message.
#include <cmath>

#include "tests/support/data_files.h"

namespace skein::data {
namespace {

Bytes idx(const std::vector<uint32_t>& extents, const Bytes& body) {
  Bytes b{0, 0, 8, uint8_t(extents.size())};
  for (const uint32_t e : extents)
    for (int shift = 24; shift >= 0; shift -= 8) b.push_back(uint8_t(e >> shift));
  b.insert(b.end(), body.begin(), body.end());
  return b;
}

// A small valid MNIST: 7 and 3 images of 5 by 4.
struct Mnist {
  TemporaryDirectory d;
  Bytes train = noise(7 * 20, 1), test = noise(3 * 20, 2);
  Mnist() {
    d.write("train-images-idx3-ubyte", idx({7, 5, 4}, train));
    d.write("train-labels-idx1-ubyte", idx({7}, {0, 1, 2, 3, 4, 5, 9}));
    d.write("t10k-images-idx3-ubyte", idx({3, 5, 4}, test));
    d.write("t10k-labels-idx1-ubyte", idx({3}, {9, 8, 7}));
  }
  std::string error() const {
    return message_of<BadFile>([&] { open_data("mnist:" + d.path(), 0); });
  }
};

TEST(Idx, ReadsBackWhatWasWritten) {
  const Mnist m;
  const Split split = open_data("mnist:" + m.d.path(), 0);
  EXPECT_EQ(split.train->size(), 7);
  EXPECT_EQ(split.test->size(), 3);
  EXPECT_EQ(split.train->image(), (ImageSize{5, 4, 1}));
  EXPECT_EQ(split.train->classes().size(), 10u);
  EXPECT_EQ(split.train->label(6), 9);
  EXPECT_EQ(split.test->label(2), 7);
  for (int64_t i = 0; i < 7; ++i)
    EXPECT_EQ(pixels_at(*split.train, i), Bytes(m.train.begin() + i * 20, m.train.begin() + i * 20 + 20));
  expect_says(split.train->name(4), {"item 4", "train-images-idx3-ubyte"});
}

TEST(Idx, ReadsGzippedFilesAndDottedNames) {
  const Mnist m;
  std::filesystem::remove(m.d / "train-images-idx3-ubyte");
  std::filesystem::remove(m.d / "t10k-labels-idx1-ubyte");
  m.d.write("train-images.idx3-ubyte", idx({7, 5, 4}, m.train));
  m.d.write("t10k-labels-idx1-ubyte.gz", gzipped(idx({3}, {1, 2, 3})));
  const Split split = open_data("mnist:" + m.d.path(), 0);
  EXPECT_EQ(pixels_at(*split.train, 0), Bytes(m.train.begin(), m.train.begin() + 20));
  EXPECT_EQ(split.test->label(1), 2);
}

TEST(Idx, NamesTheMissingFileOrDirectory) {
  const Mnist m;
  std::filesystem::remove(m.d / "t10k-labels-idx1-ubyte");
  expect_says(m.error(), {m.d / "t10k-labels-idx1-ubyte", "no such file"});
  expect_says(message_of<BadFile>([] { open_data("mnist:/nowhere/at/all", 0); }),
              {"/nowhere/at/all", "no such directory"});
  expect_says(message_of<BadOption>([] { open_data("mnist", 0); }), {"mnist:DIRECTORY"});
}

TEST(Idx, RefusesEmptyAndTruncatedFiles) {
  for (const auto& [bytes, says] :
       std::vector<std::pair<Bytes, std::string>>{{{}, "empty"},
                                                  {{0, 0}, "truncated"},
                                                  {{0, 0, 8, 3, 0, 0}, "truncated"},
                                                  {idx({7, 5, 4}, noise(139)), "truncated"},
                                                  {idx({7, 5, 4}, noise(141)), "too long"}}) {
    const Mnist m;
    m.d.write("train-images-idx3-ubyte", bytes);
    expect_says(m.error(), {m.d / "train-images-idx3-ubyte", says});
  }
}

TEST(Idx, RefusesTruncatedAndDamagedGzip) {
  const Bytes good = gzipped(idx({7, 5, 4}, noise(140)));
  Bytes cut(good.begin(), good.begin() + 100), flipped = good;
  flipped[flipped.size() - 6] ^= 0x55;  // the checksum
  for (const auto& [bytes, says] : {std::pair{cut, "truncated"}, {flipped, "damaged"}}) {
    const Mnist m;
    std::filesystem::remove(m.d / "train-images-idx3-ubyte");
    m.d.write("train-images-idx3-ubyte.gz", bytes);
    expect_says(m.error(), {"train-images-idx3-ubyte.gz", says});
  }
}

TEST(Idx, RefusesHeadersThatCannotBe) {
  for (const auto& [bytes, says] : std::vector<std::pair<Bytes, std::string>>{
           {idx({7}, noise(7)), "wrong magic number 0x801"},
           {noise(400), "wrong magic"},
           {idx({0, 5, 4}, {}), "extent 0"},
           {idx({7, 0, 4}, {}), "extent 1"},
           {idx({0xFFFFFFFF, 0xFFFFFFFF, 4}, noise(10)), "extent 1"}}) {
    const Mnist m;
    m.d.write("train-images-idx3-ubyte", bytes);
    expect_says(m.error(), {m.d / "train-images-idx3-ubyte", says});
  }
}

TEST(Idx, RefusesLabelsThatDoNotFit) {
  const Mnist m;
  m.d.write("train-labels-idx1-ubyte", idx({6}, {0, 1, 2, 3, 4, 5}));
  expect_says(m.error(), {"7 images", "6 labels", "train-labels-idx1-ubyte"});
  m.d.write("train-labels-idx1-ubyte", idx({7}, {0, 1, 2, 3, 4, 10, 0}));
  expect_says(m.error(), {"label 10", "item 5", "train-images-idx3-ubyte", "0 to 9"});
}

TEST(Idx, RefusesTestImagesOfAnotherSize) {
  const Mnist m;
  m.d.write("t10k-images-idx3-ubyte", idx({3, 4, 5}, noise(60)));
  expect_says(m.error(), {"differ in size", m.d.path()});
}

TEST(Idx, FashionMnistIsWhereDebianPutsIt) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const Split split = open_data("fashion-mnist", 0);
  EXPECT_EQ(split.train->size(), 60000);
  EXPECT_EQ(split.test->size(), 10000);
  EXPECT_EQ(split.train->image(), (ImageSize{28, 28, 1}));
  std::vector<int> counts(10);
  std::vector<int64_t> bins(256);
  for (int64_t i = 0; i < 60000; ++i) {
    ++counts[size_t(split.train->label(i))];
    for (const uint8_t p : pixels_at(*split.train, i)) ++bins[p];
  }
  double sum = 0, squares = 0;
  for (int p = 0; p < 256; ++p)
    sum += double(bins[size_t(p)]) * p / 255, squares += double(bins[size_t(p)]) * p * p / 65025;
  EXPECT_EQ(counts, std::vector<int>(10, 6000));
  const double n = 60000.0 * 784, mean = sum / n;
  EXPECT_NEAR(mean, split.train->mean()[0], 1e-3);
  EXPECT_NEAR(std::sqrt(squares / n - mean * mean), split.train->std()[0], 1e-3);
}

}  // namespace
}  // namespace skein::data
