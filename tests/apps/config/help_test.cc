// The text of --help.
#include "apps/config/help.h"

#include "tests/support/reads_flags.h"

namespace skein::apps {
namespace {

using HelpTest = ReadsFlags;

TEST_F(HelpTest, HelpBeginsWithExamplesAndHasOneBlankLineBetweenGroups) {
  const std::string help = parse({"--help"}).help;
  EXPECT_SAYS(help, "Start here:");
  EXPECT_SAYS(help, "--batch-size N");
  EXPECT_SAYS(help, "[64]");
  EXPECT_SAYS(help, "--[no-]nesterov");
  EXPECT_EQ(help.find("\n\n\n"), std::string::npos);
  EXPECT_EQ(help.find("{false}"), std::string::npos);
}

}  // namespace
}  // namespace skein::apps
