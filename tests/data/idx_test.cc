// IDX and CIFAR files: good ones are read, bad ones are refused with a message.
#include <cmath>

#include "tests/support/data_files.h"

namespace skein::data {
namespace {

using Bytes = std::vector<uint8_t>;

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

Bytes read(const DataSource& s, int64_t i) {
  const ImageSize size = s.image();
  Bytes pixels(size_t(size.height * size.width * size.channels));
  EXPECT_TRUE(s.read(i, View{}, size, pixels.data()));
  return pixels;
}

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
    EXPECT_EQ(read(*split.train, i), Bytes(m.train.begin() + i * 20, m.train.begin() + i * 20 + 20));
  expect_says(split.train->name(4), {"item 4", "train-images-idx3-ubyte"});
}

TEST(Idx, ReadsGzippedFilesAndDottedNames) {
  const Mnist m;
  std::filesystem::remove(m.d / "train-images-idx3-ubyte");
  std::filesystem::remove(m.d / "t10k-labels-idx1-ubyte");
  m.d.write("train-images.idx3-ubyte", idx({7, 5, 4}, m.train));
  m.d.write("t10k-labels-idx1-ubyte.gz", gzipped(idx({3}, {1, 2, 3})));
  const Split split = open_data("mnist:" + m.d.path(), 0);
  EXPECT_EQ(read(*split.train, 0), Bytes(m.train.begin(), m.train.begin() + 20));
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
    for (const uint8_t p : read(*split.train, i)) ++bins[p];
  }
  double sum = 0, squares = 0;
  for (int p = 0; p < 256; ++p)
    sum += double(bins[size_t(p)]) * p / 255, squares += double(bins[size_t(p)]) * p * p / 65025;
  EXPECT_EQ(counts, std::vector<int>(10, 6000));
  const double n = 60000.0 * 784, mean = sum / n;
  EXPECT_NEAR(mean, split.train->mean()[0], 1e-3);
  EXPECT_NEAR(std::sqrt(squares / n - mean * mean), split.train->std()[0], 1e-3);
}

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
    const Bytes planes = noise(3072, 31), pixels = read(*split.train, 5);
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

TEST(Sources, AnUnknownKindIsToldTheNearest) {
  expect_says(message_of<BadOption>([] { open_data("fashon-mnist", 0); }),
              {"fashon-mnist", "did you mean fashion-mnist?", "imagefolder"});
  expect_says(message_of<BadOption>([] { open_data("cifar11:/x", 0); }),
              {"cifar11:/x", "did you mean cifar10?"});
}

TEST(Sources, ADirectoryWithoutItsKindIsTakenForWhatItHolds) {
  const TemporaryDirectory d;
  std::filesystem::create_directories(d / "photos/train/cat");
  std::filesystem::create_directories(d / "shards");
  std::ofstream(d / "shards/train-0.tar") << "";
  EXPECT_EQ(with_kind(d / "photos"), "imagefolder:" + (d / "photos"));
  EXPECT_EQ(with_kind(d / "shards"), "webdataset:" + (d / "shards"));
  EXPECT_EQ(with_kind("cifar10:" + (d / "photos")), "cifar10:" + (d / "photos"));
  EXPECT_EQ(with_kind(d / "nowhere"), d / "nowhere");
}

TEST(Sources, TheTableHoldsEveryKindOnce) {
  std::vector<std::string> names;
  for (const SourceRow& row : sources()) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string>{"fashion-mnist", "mnist", "cifar10", "cifar100", "imagefolder",
                                             "webdataset", "synthetic"}));
}

}  // namespace
}  // namespace skein::data
