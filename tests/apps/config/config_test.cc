// Configuration: one table drives the command line, TOML, printing and the refusals.
#include "apps/config/config.h"

#include "apps/config/algorithm_values.h"
#include "apps/config/known_words.h"
#include "apps/launch/host_list.h"
#include "data/source.h"
#include "nn/models.h"
#include "optim/strategy.h"
#include "tests/support/reads_flags.h"

namespace skein::apps {
namespace {

using ConfigTest = ReadsFlags;

TEST_F(ConfigTest, CommandLineGoesOverFileGoesOverDefault) {
  const std::string toml = file("lr = 0.5\nbatch-size = 32\nnesterov = false\ndata = \"mnist:/there\"\n");
  const Config c = parse({"--config", toml, "--batch-size", "16"}).config;
  EXPECT_EQ(c.lr, 0.5);
  EXPECT_EQ(c.batch_size, 16);
  EXPECT_FALSE(c.nesterov);
  EXPECT_EQ(c.data, "mnist:/there");
  EXPECT_EQ(c.momentum, Config().momentum);
}

TEST_F(ConfigTest, EveryFlagOfTheTableIsOnTheCommandLineInHelpAndInPrint) {
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

// gossip_avg and lists of hosts use the constant.
TEST_F(ConfigTest, AsManyWorkersCanBeAskedForAsThereCanBe) {
  EXPECT_EQ(find_flag(flags(), "workers")->allowed, text("1..", kMostWorkers));
}

TEST_F(ConfigTest, UnknownNamesAreRefusedWithTheNearest) {
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

TEST_F(ConfigTest, ValuesOfTheWrongKindOrRangeAreRefusedWithTheirPlace) {
  EXPECT_SAYS(refusal({"--batch-size", "many"}), "--batch-size: 'many' is not a whole number");
  EXPECT_SAYS(refusal({"--batch-size", "0"}), "--batch-size: 0 is out of range; allowed: 1 or more");
  EXPECT_SAYS(refusal({"--lr", "nan"}), "--lr: 'nan' is not a number");
  EXPECT_SAYS(refusal({"--momentum", "1.5"}), "allowed: from 0 to 0.99999");
  EXPECT_SAYS(refusal({"--checkpoint-every", "often"}), "--checkpoint-every: 'often'");
  EXPECT_SAYS(refusal({"--batch-size"}), "--batch-size");
  EXPECT_SAYS(refusal({"--config", file("seed = 1\nbatch-size = \"64\"\n")}),
              "recipe.toml:2: batch-size: a whole number is wanted, not a TOML string");
  EXPECT_SAYS(refusal({"--config", file("nesterov = 1\n")}),
              "recipe.toml:1: nesterov: true or false is wanted");
  EXPECT_SAYS(refusal({"--config", file("device = \"cpa\"\n")}),
              "recipe.toml:1: device: there is no 'cpa'; allowed: auto, cpu, cuda");
  EXPECT_SAYS(refusal({"--config", file("lr = \n")}), "recipe.toml:1: not valid TOML");
  EXPECT_SAYS(refusal({"--config", file("lr = 1\nlr = 2\n")}), "recipe.toml:2");
  EXPECT_SAYS(refusal({"--config", (dir / "none.toml").string()}), "none.toml");
  EXPECT_SAYS(refusal({"--lr", "1", "--lr", "2"}), "--lr is given as 1 and as 2");
}

TEST_F(ConfigTest, EpochsAndStepsContradictUnlessOneIsSaidMoreStrongly) {
  EXPECT_SAYS(refusal({"--epochs", "2", "--steps", "10"}), "contradicts");
  EXPECT_SAYS(refusal({"--config", file("epochs = 2\nsteps = 10\n")}), "recipe.toml:2: steps 10 contradicts");
  const Config c = parse({"--config", file("epochs = 2\n"), "--steps", "10"}).config;
  EXPECT_EQ(c.epochs, 0);
  EXPECT_EQ(c.steps, 10);
  EXPECT_EQ(parse({"--steps", "10"}).config.epochs, 0);
  EXPECT_SAYS(refusal({"--epochs", "0"}), "both 0");
}

TEST_F(ConfigTest, NesterovNeedsMomentumIfAskedFor) {
  EXPECT_SAYS(refusal({"--nesterov", "--momentum", "0"}), "--nesterov needs --momentum above 0");
  EXPECT_FALSE(parse({"--momentum", "0"}).config.nesterov);
  EXPECT_SAYS(refusal({"--eval-only"}), "--eval-only needs --weights");
  EXPECT_SAYS(refusal({"--workers", "99999999999"}), "--workers: 99999999999 is out of range");
}

TEST_F(ConfigTest, BoundsOfAnElasticRunHoldTogether) {
  const std::vector<std::string> on = {"--elastic", "on"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), on.begin(), on.end());
    return more;
  };
  EXPECT_EQ(Config().elastic, "auto");
  const Config c = parse(with({"--min-workers", "2", "--max-workers", "8", "--restarts", "0"})).config;
  EXPECT_EQ(c.min_workers, 2);
  EXPECT_EQ(c.max_workers, 8);
  EXPECT_EQ(c.restarts, 0);
  EXPECT_SAYS(refusal(with({"--min-workers", "4", "--max-workers", "3"})),
              "--min-workers 4 is more than --max-workers 3");
  EXPECT_SAYS(refusal(with({"--min-workers", "4", "--workers", "3"})),
              "--min-workers 4 is more than --workers 3");
  EXPECT_SAYS(refusal(with({"--max-workers", "2", "--workers", "3"})),
              "--max-workers 2 is less than --workers 3");
  EXPECT_EQ(refusal(with({"--min-workers", "2", "--max-workers", "2", "--workers", "2"})), "");
  EXPECT_EQ(refusal({"--restarts", "5"}), "");
  EXPECT_SAYS(refusal({"--restarts", "5", "--elastic", "off"}),
              "--restarts is of elastic runs; leave out --elastic off");
  EXPECT_SAYS(refusal({"--config", file("elastic = \"on\"\nmin-workers = 3\nmax-workers = 2\n")}),
              "recipe.toml:2: min-workers 3 is more than --max-workers 2");
  EXPECT_SAYS(refusal({"--elastic", "of"}), "--elastic: there is no 'of'; allowed: auto, on, off");
  EXPECT_SAYS(refusal(with({"--min-workers", "0"})), "--min-workers: 0 is out of range");
}

TEST_F(ConfigTest, WhoJoinsAJobDoesNotSayHowItBegan) {
  const Config c = parse({"--join", "10.0.0.7:4711"}).config;
  EXPECT_EQ(c.join, "10.0.0.7:4711");
  EXPECT_EQ(c.elastic, "on");
  for (const std::vector<std::string>& flag :
       std::vector<std::vector<std::string>>{{"--workers", "4"},
                                             {"--hosts", "a,b"},
                                             {"--weights", "one.safetensors"},
                                             {"--eval-only", "--weights", "one.safetensors"}}) {
    std::vector<std::string> words = {"--join", "runs/one"};
    words.insert(words.end(), flag.begin(), flag.end());
    EXPECT_SAYS(refusal(words), "--join enters a running job as one more worker; leave out " + flag[0]);
  }
  EXPECT_SAYS(refusal({"--join", "runs/one", "--elastic", "off"}), "leave out --elastic off");
  EXPECT_SAYS(refusal({"--join", "runs/one", "--resume", "auto", "--output", dir / "none"}),
              "--join does not go with --resume");
}

TEST_F(ConfigTest, AFlagOfOneAlgorithmIsOneRowAndRefusedElsewhere) {
  Flags table = flags();
  table.push_back({"algorithm",
                   "pace",
                   Flag::kCount,
                   {},
                   "1..",
                   true,
                   "a flag of two algorithms",
                   {"local-sgd", "slowmo"},
                   {}});
  const Config c = parse({"--algorithm", "local_sgd", "--pace", "8"}, table).config;
  EXPECT_EQ(options_of(c).integer("pace", 4), 8);
  EXPECT_EQ(options_of(parse({"--algorithm", "local-sgd"}, table).config).integer("pace", 4), 4);
  EXPECT_SAYS(refusal({"--pace", "8"}, table),
              "--pace is not read by --algorithm sgd; it belongs to local-sgd, slowmo");
  EXPECT_SAYS(refusal({"--algorithm", "slowmo", "--pace", "0"}, table), "--pace: 0 is out of range");
  Config d;
  read_toml(d, file(to_toml(c, table)), Source::kFile, table);
  EXPECT_EQ(d.of_algorithm, c.of_algorithm);
}

TEST_F(ConfigTest, ADirectoryIsDataWithoutItsKind) {
  fs::create_directories(dir / "photos/train");
  const std::string photos = dir / "photos";
  EXPECT_EQ(parse({"--data", photos}).config.data, "imagefolder:" + photos);
  EXPECT_SAYS(refusal({"--data", "imagefolder", photos}),
              "unexpected argument '" + photos + "'; did you mean --data imagefolder:" + photos + "?");
  EXPECT_SAYS(refusal({"elsewhere"}), "unexpected argument 'elsewhere'; see --help");
}

TEST_F(ConfigTest, CheckpointsComeByEpochsOrSteps) {
  const auto every = [](const char* s) { return parse_every(parse({"--checkpoint-every", s}).config); };
  EXPECT_EQ(every("3").epochs, 3);
  EXPECT_EQ(every("500steps").steps, 500);
  EXPECT_EQ(every("500steps").epochs, 0);
  EXPECT_EQ(every("2 epochs").epochs, 2);
}

TEST_F(ConfigTest, RecipesOfTheTreeAreConfigurations) {
  int recipes = 0;
  for (const auto& entry : fs::directory_iterator(SKEIN_SOURCE_DIR "/apps/config/recipes")) {
    EXPECT_EQ(refusal({"--config", entry.path()}), "");
    ++recipes;
  }
  EXPECT_GT(recipes, 0);
}

TEST_F(ConfigTest, ActionsAreRecognized) {
  EXPECT_EQ(parse({"--version"}).action, Command::kVersion);
  EXPECT_EQ(parse({"--list"}).action, Command::kList);
  EXPECT_EQ(parse({"--list"}).list, "");
  EXPECT_EQ(parse({"--list", "models"}).list, "models");
  EXPECT_EQ(parse({"--print", "--lr", "3"}).config.lr, 3);
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
