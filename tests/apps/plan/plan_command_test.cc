// The commands that --plan prints: all of them start what was simulated.
#include "apps/plan/plan_command.h"

#include <array>
#include <cstdio>

#include "apps/plan/plan.h"
#include "tests/support/reads_flags.h"

namespace skein::apps {
namespace {

struct PlanCommand : ReadsFlags {
  // The words after the program, as a shell reads them.
  static std::vector<std::string> read_by_a_shell(const std::string& command) {
    FILE* shell = popen(("set -- " + command + "; printf '%s\\n' \"$@\"").c_str(), "r");
    std::vector<std::string> words;
    std::array<char, 4096> line;
    while (fgets(line.data(), int(line.size()), shell)) {
      words.emplace_back(line.data());
      words.back().pop_back();
    }
    EXPECT_EQ(pclose(shell), 0) << command;
    return {words.begin() + 1, words.end()};
  }
  static std::string typed(const std::vector<std::string>& words, bool fewer = false) {
    std::vector<const char*> argv = {"train_imagenet"};
    for (const std::string& w : words) argv.push_back(w.c_str());
    argv.push_back(nullptr);
    return typed_words(parse(words).config, argv.data(), fewer);
  }
  static std::map<std::string, std::string> own_flags(const Config& c) {
    std::map<std::string, std::string> own;
    for (const Flag& f : flags())
      if (!f.algorithms.empty() && c.of_algorithm.contains(f.name)) own[f.name] = c.of_algorithm.at(f.name);
    return own;
  }
  // That the command of each candidate asks for it and for nothing else.
  static void expect_all_start(const std::vector<std::string>& words) {
    const Command asked = parse(words);
    const Plan p{.config = asked.config, .command = typed(words), .probed = {}};
    for (const Candidate& what : candidates(asked.config)) {
      const std::string command = command_of(p, {.what = what, .images_per_second = 100});
      SCOPED_TRACE(command);
      const Command c = parse(read_by_a_shell(command));
      EXPECT_EQ(c.action, Command::kTrain);
      EXPECT_EQ(c.config.algorithm, what.algorithm);
      EXPECT_EQ(c.config.workers, 4);
      EXPECT_EQ(c.config.lr, 0.3);
      EXPECT_EQ(c.config.output, "o'brien's runs");
      EXPECT_EQ(c.config.predicted, "images/s=100,bytes/step=0");
      std::string flags;
      for (const auto& [name, value] : own_flags(c.config))
        flags += value == "false" ? " --no-" + name : " --" + name + ' ' + value;
      // In another order.
      EXPECT_EQ(text(c.config.wire == "fp32" ? "" : " --wire " + c.config.wire, flags).size(),
                what.flags.empty() ? 0 : what.flags.size() + 1);
    }
  }
};

const std::vector<std::string> kOfAnyRun = {"--workers", "4",   "--output",    "o'brien's runs",
                                            "--lr",      "0.3", "--optimizer", "adamw"};

std::vector<std::string> with(std::vector<std::string> more) {
  more.insert(more.end(), kOfAnyRun.begin(), kOfAnyRun.end());
  return more;
}

TEST_F(PlanCommand, OfEverySettingStartsWhatWasSimulated) {
  expect_all_start(with({"--plan"}));
  expect_all_start(with({"--plan", "--html", "a.html", "--algorithm", "local-sgd", "--tau", "7", "--wire",
                         "bf16", "--predicted", "images/s=1"}));
  expect_all_start(with({"--html=a.html", "--algorithm=sgp", "--plan", "--peers=1", "--no-final-average"}));
}

TEST_F(PlanCommand, TakesTheRestOfAFileThatGivesFlagsOfAnAlgorithm) {
  const std::string path = file(
      "algorithm = \"local-sgd\"\ntau = 7\nwire = \"bf16\"\nseed = 5\ntensorboard = false\n"
      "lr = 0.1\noutput = \"x\"\n");
  const auto words = with({"--config", path, "--plan"});
  expect_all_start(words);
  const std::string command = typed(words);
  EXPECT_TRUE(command.ends_with(" --seed 5 --no-tensorboard")) << command;
  EXPECT_SAYS(typed({"--config", file("algorithm = \"sgp\"\nseed = 5\n"), "--plan"}), "--config");
}

TEST_F(PlanCommand, ForFewerWorkersNamesNone) {
  EXPECT_EQ(typed({"--plan", "--workers", "4", "--min-workers=2", "--lr", "0.3"}, true),
            "train_imagenet --lr 0.3");
  EXPECT_EQ(typed({"--hosts", "a,b", "--global-batch", "64"}, true), "train_imagenet");
}

}  // namespace
}  // namespace skein::apps
