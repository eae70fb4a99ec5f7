// The words of a command line, and the refusal of those that are none of its flags.
#include "apps/command_line/given_flags.h"

#include "tests/support/reads_flags.h"

namespace skein::apps {
namespace {

using GivenFlagsTest = ReadsFlags;

TEST_F(GivenFlagsTest, EveryFlagOfTheTableIsOnTheCommandLineInHelpAndInPrint) {
  const std::string help = parse({"--help"}).help, printed = to_toml({});
  for (const Flag& f : flags()) {
    EXPECT_SAYS(help, (f.kind == Flag::kSwitch ? "--[no-]" : "--") + f.name);
    if (!f.of_algorithm()) { EXPECT_SAYS(printed, "\n" + f.name + " = "); }
    const std::string value = value_of({}, f);
    const std::string refused =
        f.kind == Flag::kSwitch || value.empty() ? "" : refusal({"--" + f.name, value});
    EXPECT_EQ(refused.find("unknown"), std::string::npos) << refused;
  }
}

TEST_F(GivenFlagsTest, UnknownNamesAreRefusedWithTheNearest) {
  EXPECT_SAYS(refusal({"--bacth-size", "3"}), "unknown flag --bacth-size; did you mean --batch-size?");
  EXPECT_SAYS(refusal({"--epoch=3"}), "did you mean --epochs?");
  EXPECT_SAYS(refusal({"fashion-mnist"}),
              "unexpected argument 'fashion-mnist'; did you mean --data fashion-mnist?");
  EXPECT_SAYS(refusal({"--precision", "fp23"}),
              "--precision: there is no 'fp23'; allowed: fp32, bf16, fp16; did you mean fp32?");
  const std::string message = refusal({"--config", file("lr = 0.1\n\nlearing-rate = 3\nmomentun = 0.5\n")});
  EXPECT_SAYS(message, "recipe.toml:");
  EXPECT_SAYS(refusal({"--config", file("lr = 0.1\n\nmomentun = 0.5\n")}),
              "recipe.toml:3: unknown key 'momentun'; did you mean momentum?");
  EXPECT_SAYS(refusal({"--config", file("[train]\nlr = 0.1\n")}), "recipe.toml:1: there are no sections");
}

TEST_F(GivenFlagsTest, ADirectoryIsDataWithoutItsKind) {
  fs::create_directories(dir / "photos/train");
  const std::string photos = dir / "photos";
  EXPECT_EQ(parse({"--data", photos}).config.data, "imagefolder:" + photos);
  EXPECT_SAYS(refusal({"--data", "imagefolder", photos}),
              "unexpected argument '" + photos + "'; did you mean --data imagefolder:" + photos + "?");
  EXPECT_SAYS(refusal({"elsewhere"}), "unexpected argument 'elsewhere'; see --help");
}

}  // namespace
}  // namespace skein::apps
