// Connecting one process with others: what is left of it when they do not come.
#include <filesystem>

#include "tests/support/keys.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

// Rank 0 of two, where rank 1 says the same as rank 0 and then never comes.
class Deserted final : public Exchange {
 public:
  Rank rank() const override { return 0; }
  int size() const override { return 2; }
  std::vector<std::string> all_gather(const std::string& mine) override { return {mine, mine}; }
};

std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

// A worker of an elastic run connects as often as those who should come die.
TEST(Connecting, InVainLeavesNoFilesOpen) {
  for (const Way way : {Way::kShared, Way::kTcp}) {
    std::ptrdiff_t before = 0;
    for (int i = 0; i < 4; ++i) {
      Deserted others;
      EXPECT_THROW(connect(others, {.way = way, .key = kKey, .deadline = 0.01}), Timeout);
      if (i == 0) before = open_files();
    }
    EXPECT_EQ(open_files(), before) << (way == Way::kTcp ? "tcp" : "shared");
  }
}

}  // namespace
}  // namespace skein::comm
