// What flags must be to each other.
#include "apps/config/reconcile.h"

#include "apps/config/algorithm_values.h"
#include "tests/support/reads_flags.h"

namespace skein::apps {
namespace {

using Reconcile = ReadsFlags;

TEST_F(Reconcile, EpochsAndStepsContradictUnlessOneIsSaidMoreStrongly) {
  EXPECT_SAYS(refusal({"--epochs", "2", "--steps", "10"}), "contradicts");
  EXPECT_SAYS(refusal({"--config", file("epochs = 2\nsteps = 10\n")}), "recipe.toml:2: steps 10 contradicts");
  const Config c = parse({"--config", file("epochs = 2\n"), "--steps", "10"}).config;
  EXPECT_EQ(c.epochs, 0);
  EXPECT_EQ(c.steps, 10);
  EXPECT_EQ(parse({"--steps", "10"}).config.epochs, 0);
  EXPECT_SAYS(refusal({"--epochs", "0"}), "both 0");
}

TEST_F(Reconcile, TheBatchIsSaidOnce) {
  EXPECT_EQ(parse({"--batch-size", "64,64,32"}).config.batch_size.shares, (std::vector<int64_t>{64, 64, 32}));
  EXPECT_EQ(global_batch_of(parse({"--batch-size", "64,64,32", "--workers", "3"}).config, 3), 160);
  EXPECT_TRUE(parse({"--batch-size", "auto"}).config.batch_size.automatic);
  EXPECT_EQ(global_batch_of(parse({"--batch-size", "auto"}).config, 3), 192);
  EXPECT_EQ(global_batch_of(parse({"--batch-size", "auto", "--global-batch", "100"}).config, 3), 100);
  EXPECT_EQ(global_batch_of(parse({"--global-batch", "100"}).config, 3), 100);
  EXPECT_EQ(parse({"--config", file("global-batch = 100\n"), "--batch-size", "8"}).config.global_batch, 0);
  EXPECT_EQ(refusal({"--batch-size", "64,32", "--global-batch", "96"}), "");
  EXPECT_SAYS(refusal({"--batch-size", "64,32", "--global-batch", "100"}),
              "--batch-size 64,32 adds up to 96, not to --global-batch 100");
  EXPECT_SAYS(refusal({"--batch-size", "64", "--global-batch", "100"}), "say the same thing twice");
  EXPECT_SAYS(refusal({"--batch-size", "64,64,32", "--workers", "2"}),
              "--batch-size: 64,64,32 is for 3 workers, and there are 2");
  EXPECT_SAYS(refusal({"--batch-size", "64,0"}), "--batch-size: 0 is out of range; allowed: 1 or more");
  EXPECT_SAYS(refusal({"--batch-size", "64,,32"}), "--batch-size: '' is not a whole number");
  EXPECT_SAYS(refusal({"--batch-size", "automatic"}), "64,64,32, or auto");
  EXPECT_SAYS(refusal({"--config", file("batch-size = auto\n")}), "text needs quotes: batch-size = \"auto\"");
}

TEST_F(Reconcile, SharesAreOfOneCommonOrderWhoseMeansAreWeighed) {
  EXPECT_SAYS(refusal({"--batch-size", "8,16", "--split", "dirichlet:0.3"}),
              "each worker has its own; give one number");
  EXPECT_SAYS(refusal({"--batch-size", "auto", "--algorithm", "lsgd"}), "lsgd follows the best worker");
  EXPECT_SAYS(refusal({"--batch-size", "auto", "--deterministic"}),
              "measured time, which is not reproducible");
  EXPECT_EQ(refusal({"--batch-size", "8,16", "--deterministic"}), "");
  EXPECT_SAYS(refusal({"--batch-size", "auto", "--algorithm", "downpour", "--replay", "file"}),
              "--replay is of runs");
}

// What --print and config.toml show can be read back.
TEST_F(Reconcile, ABatchIsWrittenAsItWasSaid) {
  for (const char* said : {"48", "64,64,32", "auto"}) {
    const Config c = parse({"--batch-size", said, "--workers", "3"}).config;
    EXPECT_EQ(parse({"--config", file(to_toml(c))}).config.batch_size.words(), said);
  }
  EXPECT_EQ(to_json(parse({"--batch-size", "48"}).config)["batch-size"], 48);
  EXPECT_EQ(to_json(parse({"--batch-size", "auto"}).config)["batch-size"], "auto");
}

TEST_F(Reconcile, NesterovNeedsMomentumIfAskedFor) {
  EXPECT_SAYS(refusal({"--nesterov", "--momentum", "0"}), "--nesterov needs --momentum above 0");
  EXPECT_FALSE(parse({"--momentum", "0"}).config.nesterov);
  EXPECT_SAYS(refusal({"--eval-only"}), "--eval-only needs --weights");
  EXPECT_SAYS(refusal({"--workers", "99999999999"}), "--workers: 99999999999 is out of range");
}

TEST_F(Reconcile, BoundsOfAnElasticRunHoldTogether) {
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

TEST_F(Reconcile, WhoJoinsAJobDoesNotSayHowItBegan) {
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

TEST_F(Reconcile, AFlagOfOneAlgorithmIsOneRowAndRefusedElsewhere) {
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

TEST_F(Reconcile, AFlagWithoutWhichAnAlgorithmIsAnotherIsRequired) {
  EXPECT_SAYS(refusal({"--algorithm", "qsr", "--workers", "2"}), "--algorithm qsr needs --qsr-c");
  EXPECT_SAYS(refusal({"--algorithm", "post-local", "--workers", "2"}),
              "--algorithm post-local needs --switch-step");
  EXPECT_EQ(refusal({"--algorithm", "qsr", "--workers", "2", "--qsr-c", "0.2"}), "");
}

}  // namespace
}  // namespace skein::apps
