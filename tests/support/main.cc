// main() of the test programs. Each holds the tests of one folder; --file=NAME runs those of one source file alone, as ctest
// does, and a process that a test started plays its role.
#include <filesystem>

#include "tests/support/processes.h"

namespace skein {
namespace {

std::string stem_of(const char* path) { return std::filesystem::path(path).stem().string(); }

// Excludes the tests of all other files, whatever --gtest_filter says besides.
bool choose_file(const std::string& stem) {
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  std::string others;
  bool found = false;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(t);
      if (stem_of(test.file()) == stem)
        found = true;
      else
        others += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  std::string filter = GTEST_FLAG_GET(filter);
  filter += filter.find('-') == std::string::npos ? "-" : ":";
  GTEST_FLAG_SET(filter, filter + others);
  return found;
}

int run(int argc, char** argv) {
  std::string file;
  for (int i = 1; i < argc; ++i)
    if (const std::string word = argv[i]; word.rfind("--file=", 0) == 0) file = word.substr(7);
  // In a directory of results each file that ran has its own, whichever program ran it.
  const std::string output = GTEST_FLAG_GET(output);
  if (!file.empty() && !output.empty() && output.back() == '/')
    GTEST_FLAG_SET(output, output + stem_of(argv[0]) + "." + file + ".xml");
  ::testing::InitGoogleTest(&argc, argv);
  if (file.empty() || choose_file(file)) return RUN_ALL_TESTS();
  std::cerr << argv[0] << ": --file=" << file << ": no such file in this program" << std::endl;
  return 2;
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  if (const auto status = skein::comm::play_role(argc, argv)) return *status;
  return skein::run(argc, argv);
}
