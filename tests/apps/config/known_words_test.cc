// Flags of other programs and forgotten quotes: what is answered.
#include "apps/config/known_words.h"

#include "data/source.h"
#include "nn/models.h"
#include "optim/strategy.h"
#include "tests/support/reads_flags.h"

namespace skein::apps {
namespace {

using KnownWordsTest = ReadsFlags;

TEST_F(KnownWordsTest, WordsOfOtherProgramsAreAnswered) {
  const auto answer = [](const char* flag, const char* word) { return refusal({flag, word}); };
  EXPECT_SAYS(answer("--algorithm", "ddp"), "--algorithm allreduce");
  EXPECT_SAYS(answer("--device", "gpu"), "--device cuda");
  EXPECT_SAYS(answer("--model", "vit_b_16"), "transformers are not available");
  EXPECT_SAYS(answer("--optimizer", "adam"), "--optimizer: there is no 'adam': it is --optimizer adamw");
  EXPECT_SAYS(answer("--opt", "adamw"), "unknown flag --opt: it is called --optimizer");
  EXPECT_SAYS(answer("-b", "32"), "unknown flag -b: images per step and worker are --batch-size");
  EXPECT_SAYS(refusal({"--dry-run"}), "--print shows the configuration");
  EXPECT_SAYS(refusal({"--config", file("optimizer = \"adam\"\n")}),
              "recipe.toml:1: optimizer: there is no 'adam': it is --optimizer adamw");
  EXPECT_SAYS(refusal({"--config", file("device = \"gpu\"\n")}), "recipe.toml:1: device: there is no 'gpu'");
  const std::string unknown = refusal({"--frobnicate", "3"});
  EXPECT_SAYS(unknown, "unknown flag --frobnicate; see --help");
}

TEST_F(KnownWordsTest, NoAnswerDeniesWhatExists) {
  for (const auto& row : optim::strategies()) EXPECT_EQ(answer_to_value("algorithm", row.name), "");
  for (const auto& row : optim::rules()) EXPECT_EQ(answer_to_value("optimizer", row.name), "");
  for (const auto& row : nn::models()) EXPECT_EQ(answer_to_value("model", row.name), "") << row.name;
  for (const auto& row : data::sources()) EXPECT_EQ(answer_to_value("data", row.name), "") << row.name;
  for (const char* device : {"auto", "cpu", "cuda", "cuda:1"})
    EXPECT_EQ(answer_to_value("device", device), "");
  for (const char* type : {"fp32", "bf16", "fp16"}) EXPECT_EQ(answer_to_value("precision", type), "");
  for (const Flag& f : flags()) EXPECT_EQ(answer_to_flag(f.name), "") << f.name;
}

TEST_F(KnownWordsTest, ForgottenQuotesAreNamed) {
  EXPECT_SAYS(refusal({"--config", file("lr = 0.1\ndata = fashion-mnist\n")}),
              "recipe.toml:2: not valid TOML");
  EXPECT_SAYS(refusal({"--config", file("lr = 0.1\ndata = fashion-mnist\n")}),
              "; text needs quotes: data = \"fashion-mnist\"");
  EXPECT_THROW(parse({"--config", file("data = fashion-mnist\n")}), BadOption);
}

}  // namespace
}  // namespace skein::apps
