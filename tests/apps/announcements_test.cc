// The last words of a run.
#include "apps/announcements.h"

#include <gtest/gtest.h>

namespace skein::apps {
namespace {

TEST(Announcements, AnInterruptedRunSaysHowToContinue) {
  Outcome out;
  out.step = 12, out.interrupted = true;
  const std::string words = words_at_end(out, Config(), "runs/of today");
  EXPECT_NE(words.find("interrupted after step 12; continue with: "), std::string::npos) << words;
  EXPECT_NE(words.find("--resume 'runs/of today'\n"), std::string::npos) << words;
}

TEST(Announcements, ARunNamesItsFilesAndHowToTrainLonger) {
  Config c;
  c.epochs = 3;
  Outcome out;
  out.step = 30, out.training_seconds = 61;
  out.ema.emplace().top1 = 90;
  out.best = Best{.top1 = 91.5, .loss = 1, .epoch = 2, .step = 20, .ema = true};
  const std::string words = words_at_end(out, c, "runs/1");
  for (const char* part :
       {"1:01 of training", "runs/1/report.html", "runs/1/model_ema.safetensors",
        "top-1 91.50 % after epoch 2", "of the moving average", "--resume runs/1 --epochs 6"})
    EXPECT_NE(words.find(part), std::string::npos) << part << " in\n" << words;
  c.steps = 30;
  EXPECT_NE(words_at_end(out, c, "runs/1").find("--steps 60"), std::string::npos);
  out.out_of_patience = true;  // more steps would end at the next evaluation
  EXPECT_NE(words_at_end(out, c, "runs/1").find("--resume runs/1 --patience 0"), std::string::npos);
}

}  // namespace
}  // namespace skein::apps
