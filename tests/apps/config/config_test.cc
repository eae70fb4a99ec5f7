// Configuration: one table drives the command line, TOML, printing and the refusals.
#include "apps/config/config.h"

#include "apps/config/algorithm_values.h"
#include "apps/launch/host_list.h"
#include "optim/strategy.h"
#include "tests/support/reads_flags.h"

namespace skein::apps {
namespace {

using ConfigTest = ReadsFlags;

// gossip_avg and lists of hosts use the constant.
TEST_F(ConfigTest, AsManyWorkersCanBeAskedForAsThereCanBe) {
  EXPECT_EQ(find_flag(flags(), "workers")->allowed, text("1..", kMostWorkers));
}

TEST_F(ConfigTest, ValuesOfTheWrongKindOrRangeAreRefusedWithTheirPlace) {
  EXPECT_SAYS(refusal({"--batch-size", "many"}), "--batch-size: 'many' is not a whole number");
  EXPECT_SAYS(refusal({"--batch-size", "0"}), "--batch-size: 0 is out of range; allowed: 1 or more");
  EXPECT_SAYS(refusal({"--lr", "nan"}), "--lr: 'nan' is not a number");
  EXPECT_SAYS(refusal({"--momentum", "1.5"}), "allowed: from 0 to 0.99999");
  EXPECT_SAYS(refusal({"--checkpoint-every", "often"}), "--checkpoint-every: 'often'");
  EXPECT_SAYS(refusal({"--batch-size"}), "--batch-size");
  EXPECT_SAYS(refusal({"--config", file("seed = 1\nlog-every = \"64\"\n")}),
              "recipe.toml:2: log-every: a whole number is wanted, not a TOML string");
  EXPECT_SAYS(refusal({"--config", file("nesterov = 1\n")}),
              "recipe.toml:1: nesterov: true or false is wanted");
  EXPECT_SAYS(refusal({"--config", file("device = \"cpa\"\n")}),
              "recipe.toml:1: device: there is no 'cpa'; allowed: auto, cpu, cuda");
  EXPECT_SAYS(refusal({"--config", file("lr = \n")}), "recipe.toml:1: not valid TOML");
  EXPECT_SAYS(refusal({"--config", file("lr = 1\nlr = 2\n")}), "recipe.toml:2");
  EXPECT_SAYS(refusal({"--config", (dir / "none.toml").string()}), "none.toml");
  EXPECT_SAYS(refusal({"--lr", "1", "--lr", "2"}), "--lr is given as 1 and as 2");
}

TEST_F(ConfigTest, CheckpointsComeByEpochsOrSteps) {
  const auto every = [](const char* s) { return parse_every(parse({"--checkpoint-every", s}).config); };
  EXPECT_EQ(every("3").epochs, 3);
  EXPECT_EQ(every("500steps").steps, 500);
  EXPECT_EQ(every("500steps").epochs, 0);
  EXPECT_EQ(every("2 epochs").epochs, 2);
}

TEST_F(ConfigTest, NumbersAreTheSameHoweverTheyAreWritten) {
  const auto written = [](const std::vector<std::string>& words) { return to_toml(parse(words).config); };
  EXPECT_EQ(written({"--algorithm", "diloco", "--workers", "2", "--tau", "016", "--outer-lr", ".70"}),
            written({"--algorithm", "diloco", "--workers", "2", "--tau", "16", "--outer-lr", "7e-1"}));
  EXPECT_EQ(written({"--optimizer", "adamw", "--epsilon", "1e-8"}),
            written({"--optimizer", "adamw", "--epsilon", "0.00000001"}));
}

TEST_F(ConfigTest, TextIsUtf8BecauseAFileIsToSayIt) {
  EXPECT_EQ(refusal({"--output", "caf\xc3\xa9"}), "");
  EXPECT_SAYS(refusal({"--output", "caf\xe9"}), "--output: 'caf\xe9' is not UTF-8");
}

TEST_F(ConfigTest, RecipesOfTheTreeAreConfigurations) {
  int recipes = 0;
  for (const auto& entry : fs::directory_iterator(SKEIN_SOURCE_DIR "/apps/config/recipes")) {
    EXPECT_EQ(refusal({"--config", entry.path()}), "");
    ++recipes;
  }
  EXPECT_GT(recipes, 0);
}

TEST_F(ConfigTest, AResumedRunsChoicesHoldAndOnlyFreeOnesMayChange) {
  Config c;
  read_toml(c, file(to_toml(parse({"--data", "mnist:/a", "--model", "mlp", "--epochs", "3"}).config)),
            Source::kResumed);
  const auto change = [&](const char* name, const char* value) {
    Config d = c;
    assign(d, *find_flag(flags(), name), value, {Source::kCommandLine, std::string("--") + name});
    return d;
  };
  EXPECT_EQ(change("epochs", "5").epochs, 5);
  EXPECT_EQ(change("data", "mnist:/b").data, "mnist:/b");
  EXPECT_EQ(change("batch-size", "64").batch_size, 64);
  EXPECT_THROW(change("batch-size", "65"), BadOption);
  EXPECT_THROW(change("data", "fashion-mnist"), BadOption);
  try {
    change("model", "small-cnn");
    FAIL() << "another model was accepted";
  } catch (const BadOption& e) {
    EXPECT_SAYS(std::string(e.what()), "--model: small-cnn, but the run to be resumed has model = mlp");
  }
}

}  // namespace
}  // namespace skein::apps
