// The table of data sources.
#include "tests/support/data_files.h"

namespace skein::data {
namespace {

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
