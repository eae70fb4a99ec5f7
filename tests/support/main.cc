// main() of the test programs. Each holds the tests of one folder. --file=NAME runs only those of one source
// file, as ctest does. A process that a test started plays its role.
#include <cstdlib>
#include <filesystem>

#include "engine/base.h"
#include "engine/device/processor.h"
#include "tests/support/processes.h"

namespace skein {
namespace {

std::string stem_of(const char* path) { return std::filesystem::path(path).stem().string(); }

// A filter for the tests of this file, or for all others; it names whole suites if possible, to be short.
std::string filter_of(const std::string& stem, bool others) {
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  std::string filter;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(s);
    std::string chosen;
    int count = 0;
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(t);
      if ((stem_of(test.file()) == stem) == others) continue;
      chosen += std::string(suite.name()) + "." + test.name() + ":";
      ++count;
    }
    filter += count == suite.total_test_count() ? std::string(suite.name()) + ".*:" : chosen;
  }
  return filter;
}

// Chooses the tests of this file, and of these what --gtest_filter chooses. False: there are none.
bool choose_file(const std::string& stem) {
  const std::string own = filter_of(stem, false);
  std::string filter = GTEST_FLAG_GET(filter);
  if (filter == "*")
    filter = own;
  else
    filter += (filter.find('-') == std::string::npos ? "-" : ":") + filter_of(stem, true);
  GTEST_FLAG_SET(filter, filter);
  return !own.empty();
}

int run(int argc, char** argv) {
  std::string file;
  for (int i = 1; i < argc; ++i)
    if (const std::string word = argv[i]; word.rfind("--file=", 0) == 0) file = word.substr(7);
  // Each source file, or shard of one, gets its own file in a directory of results, whichever program ran it.
  const std::string output = GTEST_FLAG_GET(output);
  const char* const shard = std::getenv("GTEST_SHARD_INDEX");
  if (!file.empty() && !output.empty() && output.back() == '/')
    GTEST_FLAG_SET(output, output + stem_of(argv[0]) + "." + file + (shard ? text('.', shard) : "") + ".xml");
  ::testing::InitGoogleTest(&argc, argv);
  if (file.empty() || choose_file(file)) return RUN_ALL_TESTS();
  std::cerr << argv[0] << ": --file=" << file << ": no such file in this program" << std::endl;
  return 2;
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  if (const auto status = skein::comm::play_role(argc, argv)) return *status;
  try {
    skein::chosen_isa();
  } catch (const skein::BadOption& e) {
    std::cerr << "skipped: " << e.what() << std::endl;
    return 77;
  }
  return skein::run(argc, argv);
}
