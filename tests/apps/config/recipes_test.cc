// Recipes: they are part of the program, valid, weaker than all other settings, and true to their sources.
#include "apps/config/recipes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "apps/command_line/command_line.h"
#include "apps/config/list.h"
#include "optim/schedule.h"
#include "tests/support/program.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

Config parse(std::vector<std::string> words) {
  std::vector<const char*> argv = {"train_imagenet"};
  for (const std::string& w : words) argv.push_back(w.c_str());
  return parse_command_line(int(argv.size()), argv.data()).config;
}

// The rate at the first step of an epoch, for global batches of `batch` images.
double rate_in_epoch(const Config& c, double epoch, int64_t batch) {
  constexpr int64_t kSteps = 1000;
  const auto s = optim::parse_schedule(c.lr_schedule, optim::scale_rate(c.lr, batch, c.reference_batch),
                                       kSteps, double(c.epochs), c.warmup_epochs);
  return s.at(int64_t(epoch * kSteps));
}

TEST(Recipes, AreTheFilesOfTheTree) {
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(SKEIN_SOURCE_DIR "/apps/config/recipes")) {
    std::ifstream in(entry.path());
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto r = std::find_if(recipes().begin(), recipes().end(),
                                [&](const Recipe& r) { return r.name == entry.path().stem(); });
    ASSERT_NE(r, recipes().end()) << entry.path();
    EXPECT_EQ(r->toml, text);
    EXPECT_NE(r->source.find(':'), std::string::npos) << r->source;  // the author: the content
    ++files;
  }
  EXPECT_EQ(files, recipes().size());
}

TEST(Recipes, AreConfigurationsThatPrintAndReadBack) {
  for (const Recipe& r : recipes()) {
    const Config c = parse({"--recipe", r.name});
    const fs::path file = fs::path(::testing::TempDir()) / ("recipe_" + r.name + ".toml");
    std::ofstream(file) << to_toml(c);
    EXPECT_EQ(to_toml(parse({"--config", file})), to_toml(c)) << r.name;
    fs::remove(file);
  }
}

TEST(Recipes, StandUnderFileAndCommandLine) {
  const fs::path file = fs::path(::testing::TempDir()) / "over_recipe.toml";
  std::ofstream(file) << "epochs = 45\nmomentum = 0.8\n";
  const Config c = parse({"--recipe", "goyal-90", "--config", file, "--momentum", "0.7"});
  fs::remove(file);
  EXPECT_EQ(c.model, "resnet50");
  EXPECT_EQ(c.epochs, 45);
  EXPECT_EQ(c.momentum, 0.7);
  EXPECT_EQ(parse({"--recipe", "goyal-90", "--steps", "10"}).epochs, 0);
}

TEST(Recipes, AnUnknownNameIsRefusedWithTheNearest) {
  try {
    parse({"--recipe", "goyal90"});
    FAIL() << "accepted";
  } catch (const BadOption& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean goyal-90?"), std::string::npos) << e.what();
  }
}

TEST(Recipes, MistakesNameRecipeAndLine) {
  try {
    Config c;
    parse_toml(c, "# ours\nlr = 1\nbach-size = 3\n", "recipe ours", Source::kRecipe);
    FAIL() << "accepted";
  } catch (const BadOption& e) {
    EXPECT_NE(std::string(e.what()).find("recipe ours:3: unknown key 'bach-size'"), std::string::npos)
        << e.what();
  }
}

TEST(Recipes, GoyalsRatesAreThoseOfThePaper) {
  const Config c = parse({"--recipe", "goyal-90"});
  for (const int64_t batch : {256, 8192}) {
    const double peak = 0.1 * double(batch) / 256;
    EXPECT_LT(rate_in_epoch(c, 0, batch), peak / 1000);
    EXPECT_NEAR(rate_in_epoch(c, 2.5, batch), peak / 2, peak / 1000);
    EXPECT_DOUBLE_EQ(rate_in_epoch(c, 5, batch), peak);
    EXPECT_DOUBLE_EQ(rate_in_epoch(c, 29, batch), peak);
    EXPECT_NEAR(rate_in_epoch(c, 30, batch), peak / 10, 1e-12);
    EXPECT_NEAR(rate_in_epoch(c, 60, batch), peak / 100, 1e-12);
    EXPECT_NEAR(rate_in_epoch(c, 80, batch), peak / 1000, 1e-12);
  }
  EXPECT_EQ(c.weight_decay, 1e-4);
  EXPECT_FALSE(c.decay_all);
  EXPECT_TRUE(c.nesterov);
  EXPECT_EQ(c.momentum, 0.9);
}

TEST(Recipes, CifarsRateFallsAtHalfAndThreeQuarters) {
  const Config c = parse({"--recipe", "cifar-200"});
  EXPECT_DOUBLE_EQ(rate_in_epoch(c, 99, 128), 0.1);
  EXPECT_NEAR(rate_in_epoch(c, 100, 128), 0.01, 1e-12);
  EXPECT_NEAR(rate_in_epoch(c, 150, 128), 0.001, 1e-12);
  EXPECT_EQ(c.epochs, 200);
}

TEST(Recipes, AreListedWithTheirSources) {
  const std::string list = list_tables("recipes");
  for (const char* part : {"goyal-90", "arXiv:1706.02677", "cifar-200", "arXiv:1512.03385", "quick"})
    EXPECT_NE(list.find(part), std::string::npos) << list;
}

TEST(Recipes, QuickTrainsAnywhere) {
  const testing_programs::Workplace w;
  const auto e = w.run("timeout 100 $TRAIN --recipe quick --steps 3 --threads 1 --output run");
  EXPECT_EQ(e.status, 0) << e.err;
  EXPECT_NE(w.run("$TRAIN --recipe goyal-90 --print").out.find("lr-schedule = \"step\""), std::string::npos);
}

}  // namespace
}  // namespace skein::apps
