// The actions of a command line, and what goes with them.
#include "apps/command_line/command_line.h"

#include "tests/support/reads_flags.h"

namespace skein::apps {
namespace {

using CommandLine = ReadsFlags;

TEST_F(CommandLine, ActionsAreRecognized) {
  EXPECT_EQ(parse({"--version"}).action, Command::kVersion);
  EXPECT_EQ(parse({"--list"}).action, Command::kList);
  EXPECT_EQ(parse({"--list"}).list, "");
  EXPECT_EQ(parse({"--list", "models"}).list, "models");
  EXPECT_EQ(parse({"--print", "--lr", "3"}).config.lr, 3);
}

TEST_F(CommandLine, TheFirstOfSeveralActionsIsTaken) {
  EXPECT_EQ(parse({"--print", "--version"}).action, Command::kVersion);
  EXPECT_EQ(parse({"--list", "--compare", "a", "--doctor"}).action, Command::kList);
  EXPECT_EQ(parse({"--print", "--doctor"}).action, Command::kDoctor);
  EXPECT_EQ(parse({"--doctor", "--help"}).action, Command::kHelp);
  EXPECT_EQ(parse({"--predict", "a.jpg", "--weights", "m", "--print"}).action, Command::kPrint);
}

TEST_F(CommandLine, FlagsOfAnotherActionAreRefused) {
  EXPECT_SAYS(refusal({"--top", "3"}), "--top goes with --predict PATH...");
  EXPECT_SAYS(refusal({"--json"}), "--json goes with --predict PATH... or --eval-only");
  EXPECT_SAYS(refusal({"--predict", "a.jpg", "--weights", "m", "--simulate", "w"}),
              "--simulate does not go with --predict");
  EXPECT_SAYS(refusal({"--eval-only", "--weights", "m", "--simulate", "w"}),
              "--simulate does not go with --eval-only");
  EXPECT_SAYS(refusal({"--doctor", "--simulate", "w"}), "--simulate does not go with --doctor");
  const std::string of_its_run = file("simulate = \"w.toml\"\n");
  EXPECT_EQ(refusal({"--eval-only", "--weights", "m", "--config", of_its_run}), "");
  EXPECT_SAYS(refusal({"--predict", "a.jpg"}), "--predict needs --weights FILE");
  EXPECT_SAYS(refusal({"--predict", "a.jpg", "--weights", "m", "--eval-only"}),
              "--eval-only does not go with --predict");
  EXPECT_SAYS(refusal({"--compare", "a", "b", "--lr", "1"}), "--lr does not go with --compare");
  EXPECT_EQ(parse({"--compare", "a", "b"}).config.output, "compare.html");
}

}  // namespace
}  // namespace skein::apps
