// The effective values of flags that only some algorithms read are the same for the strategy and
// wherever they are shown.
#include "apps/config/algorithm_values.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/config/reconcile.h"
#include "tests/support/reads_flags.h"

namespace skein::apps {
namespace {

using AlgorithmValues = ReadsFlags;

// --print, config.toml and summary.json show the values that the strategy uses, including defaults.
TEST_F(AlgorithmValues, AlgorithmsTellTheValuesOfAllTheirFlags) {
  for (const optim::StrategyRow& row : optim::strategies()) {
    Config c;
    c.algorithm = row.name;
    c.workers = std::string(row.name) == "sgd" ? 1 : 4;
    settle_algorithm(c, int(c.workers));
    const std::string printed = to_toml(c);
    for (const Flag& f : flags()) {
      if (!f.of_algorithm() || !f.optimizers.empty()) continue;
      const bool read =
          f.algorithms.empty() || std::count(f.algorithms.begin(), f.algorithms.end(), row.name);
      // Some belong to one topology, or to one rule of a server.
      const bool of_rule = f.name.starts_with("server-") && f.name != "server-rule";
      const bool in_force = read && f.name != "base" && !of_rule;
      EXPECT_EQ(!value_of(c, f).empty(), in_force) << row.name << " --" << f.name;
      EXPECT_EQ(printed.find("\n" + f.name + " = ") != std::string::npos, in_force)
          << row.name << ' ' << f.name;
      EXPECT_EQ(to_json(c).contains(f.name), in_force) << row.name << " --" << f.name;
    }
    Config d;
    read_toml(d, file(printed), Source::kFile);
    reconcile(d);
    settle_algorithm(d, int(d.workers));
    EXPECT_EQ(d.of_algorithm, c.of_algorithm) << row.name;
    EXPECT_EQ(to_toml(d), printed) << row.name;
  }
}

// A name that is in no row of flags.def, or that only a row of strategies.def lacks, is a slip.
TEST_F(AlgorithmValues, EveryFlagOfARowExistsAndOnlyThoseOfAllAreInNoRow) {
  for (const optim::StrategyRow& row : optim::strategies()) {
    std::istringstream names(row.flags);
    for (std::string name; names >> name;) {
      if (name.back() == '!') name.pop_back();
      const Flag* flag = find_flag(flags(), name);
      EXPECT_TRUE(flag && flag->of_algorithm()) << row.name << " --" << name;
    }
  }
  for (const optim::RuleRow& row : optim::rules()) {
    std::istringstream names(row.flags);
    for (std::string name; names >> name;) {
      const Flag* flag = find_flag(flags(), name);
      EXPECT_TRUE(flag && flag->algorithms.empty()) << row.name << " --" << name;
    }
  }
  for (const Flag& f : flags())
    EXPECT_EQ(f.of_algorithm() && f.algorithms.empty() && f.optimizers.empty(), f.name == "bn-policy")
        << f.name;
}

// The same holds for flags that only some optimizers read, such as --momentum.
TEST_F(AlgorithmValues, OptimizersTellTheValuesOfAllTheirFlags) {
  for (const optim::RuleRow& row : optim::rules()) {
    const Command command = parse({"--optimizer", row.name});
    Config c = command.config;
    settle_algorithm(c, 1);
    const std::string printed = to_toml(c);
    for (const Flag& f : flags()) {
      if (f.optimizers.empty()) continue;
      const bool read = std::count(f.optimizers.begin(), f.optimizers.end(), row.name);
      EXPECT_EQ(printed.find("\n" + f.name + " = ") != std::string::npos, read) << row.name << ' ' << f.name;
      EXPECT_EQ(to_json(c).contains(f.name), read) << row.name << " --" << f.name;
      if (read) continue;
      std::vector<std::string> words = {"--optimizer", row.name, "--" + f.name};
      if (f.kind != Flag::kSwitch) words.push_back(f.kind == Flag::kCount ? "2" : "0.5");
      EXPECT_SAYS(refusal(words), "--" + f.name + " is not read by --optimizer " + row.name);
    }
    EXPECT_EQ(c.lr, row.lr) << row.name;
    EXPECT_EQ(c.weight_decay, row.weight_decay) << row.name;
    EXPECT_EQ(to_toml(parse({"--config", file(printed)}).config), printed) << row.name;
    Config resumed;
    read_toml(resumed, file(printed), Source::kResumed);
    recognize_defaults(resumed);
    reconcile(resumed);
    settle_algorithm(resumed, 1);
    EXPECT_EQ(to_toml(resumed), printed) << row.name;
  }
}

// A rate that a recipe gives was chosen for SGD; one that is given with the optimizer is meant for it.
TEST_F(AlgorithmValues, AnOptimizerBringsItsOwnRate) {
  EXPECT_EQ(parse({"--recipe", "goyal-90", "--optimizer", "adamw"}).config.lr, 0.004);
  EXPECT_EQ(parse({"--recipe", "goyal-90", "--optimizer", "sgd"}).config.weight_decay, 1e-4);
  EXPECT_EQ(parse({"--lr", "0.25", "--optimizer", "adamw"}).config.lr, 0.25);
  EXPECT_EQ(parse({"--optimizer", "adamw", "--weight-decay", "0"}).config.weight_decay, 0);
}

// As a script does that is resumed, and a newcomer with the flags of its job.
TEST_F(AlgorithmValues, AnOptimizerThatIsSaidAgainKeepsItsRate) {
  const std::string lamb = file("optimizer = \"lamb\"\nlr = 0.008\nweight-decay = 0.3\nbeta1 = 0.8\n");
  const Config again = parse({"--config", lamb, "--optimizer", "lamb"}).config;
  EXPECT_EQ(again.lr, 0.008);
  EXPECT_EQ(again.weight_decay, 0.3);
  EXPECT_EQ(again.of_algorithm.at("beta1"), "0.8");
  const Config other = parse({"--config", lamb, "--optimizer", "sgd"}).config;
  EXPECT_EQ(other.lr, 0.1);
  EXPECT_EQ(other.weight_decay, 0.0005);
  EXPECT_FALSE(other.of_algorithm.contains("beta1"));
}

TEST_F(AlgorithmValues, ValuesOfAnAlgorithmAreTheOnesItsFilesState) {
  const auto value = [](std::vector<std::string> words, const char* flag) {
    Config c = parse(words).config;
    settle_algorithm(c, int(c.workers));
    return value_of(c, *find_flag(flags(), flag));
  };
  const std::vector<std::string> sgp = {"--algorithm", "sgp", "--workers", "4"};
  EXPECT_EQ(value(sgp, "topology"), "exponential");
  EXPECT_EQ(value(sgp, "peers"), "1");
  EXPECT_EQ(value({"--algorithm", "d-psgd", "--workers", "4"}, "peers"), "2");
  EXPECT_EQ(value({"--algorithm", "sgp", "--workers", "4", "--topology", "complete"}, "peers"), "3");
  EXPECT_EQ(value({"--algorithm", "sgp", "--workers", "4", "--topology", "base"}, "peers"), "");  // its own
  EXPECT_EQ(value({"--algorithm", "sgp", "--workers", "4", "--topology", "base"}, "base"), "1");
  EXPECT_EQ(value({"--algorithm", "diloco", "--workers", "4"}, "outer-lr"), "0.7");
  EXPECT_EQ(value({"--algorithm", "diloco", "--workers", "4"}, "tau"), "100");
  EXPECT_EQ(value({"--algorithm", "easgd", "--workers", "4"}, "alpha"), "0.225");
  EXPECT_EQ(value({"--algorithm", "lsgd", "--workers", "4", "--tau-local", "8"}, "loss-window"), "8");
}

// A default may depend on the number of workers; what a user chose does not.
TEST_F(AlgorithmValues, AResumedRunMakesItsAlgorithmsDefaultsAnew) {
  Config c = parse({"--algorithm", "easgd", "--workers", "2", "--tau", "8"}).config;
  settle_algorithm(c, 2);
  Config d;
  read_toml(d, file(to_toml(c)), Source::kResumed);
  recognize_defaults(d);
  settle_algorithm(d, 8);
  EXPECT_EQ(d.of_algorithm.at("alpha"), "0.1125");
  EXPECT_EQ(d.of_algorithm.at("tau"), "8");
  c.of_algorithm["alpha"] = "0.2";
  Config chosen;
  read_toml(chosen, file(to_toml(c)), Source::kResumed);
  recognize_defaults(chosen);
  settle_algorithm(chosen, 8);
  EXPECT_EQ(chosen.of_algorithm.at("alpha"), "0.2");
}

// A newcomer settles for itself alone before it knows how many it will be one of.
TEST_F(AlgorithmValues, AnotherNumberOfWorkersMakesDefaultsAnewAndKeepsWhatWasChosen) {
  Config c = parse({"--algorithm", "easgd", "--tau", "8"}).config;
  for (const auto& [workers, alpha] : {std::pair(1, "0.9"), {4, "0.225"}, {8, "0.1125"}, {3, "0.3"}}) {
    EXPECT_EQ(adapt_algorithm(c, workers), "");
    EXPECT_EQ(c.of_algorithm.at("alpha"), alpha);
    EXPECT_EQ(c.of_algorithm.at("tau"), "8");
  }
  Config chosen = parse({"--algorithm", "easgd", "--workers", "4", "--alpha", "0.35"}).config;
  settle_algorithm(chosen, 4);
  EXPECT_EQ(adapt_algorithm(chosen, 3), "");
  EXPECT_EQ(chosen.of_algorithm.at("alpha"), "0.35");
  EXPECT_SAYS(adapt_algorithm(chosen, 9),
              "--alpha 0.35: allowed is from 0 to 0.2; 9 workers take the default instead");
  EXPECT_EQ(chosen.of_algorithm.at("alpha"), "0.1");
}

TEST_F(AlgorithmValues, AConfigurationWithoutItsAlgorithmsDefaultsIsResumed) {
  Config c;
  read_toml(c, file("algorithm = \"qsr\"\nworkers = 2\n"), Source::kResumed);
  recognize_defaults(c);
  reconcile(c);
  settle_algorithm(c, 2);
  EXPECT_EQ(c.of_algorithm.at("qsr-c"), "0");
}

TEST_F(AlgorithmValues, ARunTooShortForItsFlagsIsTold) {
  const auto told = [](std::vector<std::string> words, int64_t steps) {
    words.insert(words.end(), {"--workers", "4"});
    Config c = parse(words).config;
    settle_algorithm(c, 4);
    std::string all;
    for (const std::string& line : never_reached(c, 4, steps, 10)) all += line + '\n';
    return all;
  };
  EXPECT_EQ(told({"--algorithm", "diloco"}, 60),
            "the workers never meet: this run has 60 steps and --tau is 100\n");
  EXPECT_EQ(told({"--algorithm", "diloco"}, 100), "");
  EXPECT_EQ(told({"--algorithm", "downpour", "--tau", "9"}, 9), "");
  EXPECT_SAYS(told({"--algorithm", "downpour", "--tau", "9"}, 8), "never meet");
  EXPECT_SAYS(told({"--algorithm", "post-local", "--switch-step", "60"}, 60),
              "switch to local-sgd never comes");
  EXPECT_SAYS(told({"--algorithm", "post-local", "--switch-step", "58"}, 60),
              "after the switch the workers never");
  EXPECT_EQ(told({"--algorithm", "post-local", "--switch-step", "50"}, 60), "");
  EXPECT_SAYS(told({"--algorithm", "streaming-diloco", "--tau", "80", "--fragments", "4"}, 60),
              "some pieces");
  EXPECT_SAYS(told({"--algorithm", "streaming-diloco", "--tau", "80", "--fragments", "4"}, 19), "never meet");
  EXPECT_SAYS(told({"--algorithm", "lsgd", "--tau-local", "4", "--tau-global", "16"}, 12),
              "groups of workers never");
  EXPECT_SAYS(told({"--algorithm", "sgp", "--exact-every", "70"}, 60), "no exact average");
  EXPECT_SAYS(told({"--algorithm", "sgp", "--peers", "1@0,2@6"}, 60), "number of peers never changes");
  EXPECT_EQ(told({"--algorithm", "sgp", "--peers", "1@0,2@5"}, 60), "");
}

TEST_F(AlgorithmValues, HelpOnAnAlgorithmShowsItsFlagsAndTheirDefaults) {
  const std::string sgp = parse({"--help", "sgp"}).help, qsr = parse({"-h", "qsr"}).help;
  EXPECT_SAYS(sgp, "Assran");
  EXPECT_SAYS(sgp, "--topology TEXT");
  EXPECT_SAYS(sgp, "[exponential]");
  EXPECT_EQ(sgp.find("--tau "), std::string::npos) << sgp;
  EXPECT_SAYS(qsr, "(required)");
  EXPECT_SAYS(parse({"--help", "easgd", "--workers", "9"}).help, "[0.1 with 9 workers]");
  EXPECT_SAYS(parse({"--help", "sgd"}).help, "[recompute]");
  EXPECT_SAYS(refusal({"--help", "spg"}), "did you mean sgp?");
}

}  // namespace
}  // namespace skein::apps
