// Configuration files: they are printed and read back, and errors name them.

#include "apps/config/config.h"
#include "tests/support/reads_flags.h"

namespace skein::apps {
namespace {

using ConfigFileTest = ReadsFlags;

TEST_F(ConfigFileTest, AnErrorAboutAFlagNamesTheFileThatGaveIt) {
  const Config c = parse({"--config", file("split = \"iid\"\ntau = 4\nalgorithm = \"local-sgd\"\nlr = 1\n"),
                          "--lr", "0.5"})
                       .config;
  EXPECT_SAYS(with_place(c, "--split: worker 1 gets none"),
              "recipe.toml:1: split: --split: worker 1 gets none");
  EXPECT_SAYS(with_place(c, "--tau 4: is too long"), "recipe.toml:2: tau: --tau 4: is too long");
  for (const char* other :
       {"--lr 0.5: on the command line", "--peers 3: by default", "split is no flag here", "--", ""})
    EXPECT_EQ(with_place(c, other), other);
}

TEST_F(ConfigFileTest, PrintedConfigurationReadsBackAsTheSame) {
  Config c = parse({"--data", "imagefolder:/a \"b\"\\c\td", "--lr", "0.30000000000000004", "--steps", "70",
                    "--no-nesterov", "--weight-decay", "1e-7", "--seed", "12345678901234", "--decay-all"})
                 .config;
  const Config d = parse({"--config", file(to_toml(c))}).config;
  for (const Flag& f : flags()) EXPECT_EQ(value_of(c, f), value_of(d, f)) << f.name;
  EXPECT_EQ(to_toml(c), to_toml(d));
  EXPECT_EQ(to_json(d)["lr"], 0.30000000000000004);
  EXPECT_EQ(d.data, "imagefolder:/a \"b\"\\c\td");
}

TEST_F(ConfigFileTest, AFileThatIsNestedDeeplyIsRefused) {
  std::string keys = "a", arrays = "data = ";
  for (int i = 0; i < 300000; ++i) keys += ".a";
  arrays += std::string(300000, '[') + std::string(300000, ']');
  for (const std::string& toml : {keys + " = 1\n", arrays})
    EXPECT_SAYS(refusal({"--config", file(toml)}), "recipe.toml: nested deeper than 64 levels");
  EXPECT_SAYS(refusal({"--config", "/dev/zero"}), "/dev/zero: cannot open this file");
}

}  // namespace
}  // namespace skein::apps
