// Evaluations of the workers' common model, the best of them, and patience.
#include "apps/train/scoring.h"

#include <gtest/gtest.h>

#include "comm/communicator/world_of_one.h"
#include "tests/support/files.h"
#include "tests/support/parts.h"

namespace skein::apps {
namespace {

TEST(Scoring, ScoresTheTestImagesAndKeepsTheBestModel) {
  const Workplace w;
  comm::WorldOfOne alone;
  Parts p(alone, small_config(), w.path() / "run");
  p.run.k = 3;
  EXPECT_FALSE(p.scoring.is_current());
  ASSERT_TRUE(p.scoring.score());
  EXPECT_EQ(p.scoring.latest()->images, 20);
  EXPECT_TRUE(p.scoring.is_current());
  ASSERT_TRUE(p.scoring.best());
  EXPECT_EQ(p.scoring.best()->step, 3);
  EXPECT_TRUE(w.has("run/model_best.safetensors"));
  testing_programs::expect_has(p.scoring.line(), "  test loss ");
  const auto event = p.scoring.take_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->step, 3);
  EXPECT_EQ(event->loss, p.scoring.latest()->loss);
  EXPECT_FALSE(event->bytes);
  EXPECT_FALSE(p.scoring.take_event());
  p.run.k = 4;
  EXPECT_EQ(p.scoring.line(), "");
  ASSERT_TRUE(p.scoring.score());
  EXPECT_EQ(p.scoring.best()->step, 3);  // an equal score is not better
}

TEST(Scoring, ThatCannotKeepTheBestModelSaysHowToResume) {
  const Workplace w;
  comm::WorldOfOne alone;
  Parts p(alone, small_config(), w.path() / "run");
  std::filesystem::create_directories(w.path() / "run/model_best.safetensors.partial");
  const std::string why = testing::message_of<BadFile>([&] { p.scoring.score(); });
  testing_programs::expect_has(why, "model_best.safetensors.partial");
  testing_programs::expect_has(why, "; no checkpoint was written yet");
}

TEST(Scoring, ThatIsStoppedOnTheWayChangesNothing) {
  const Workplace w;
  comm::WorldOfOne alone;
  Parts p(alone, small_config(), w.path() / "run");
  p.run.stop = [] { return true; };
  EXPECT_FALSE(p.scoring.score());
  EXPECT_FALSE(p.scoring.latest());
  EXPECT_FALSE(p.scoring.take_event());
  EXPECT_FALSE(p.scoring.best());
  EXPECT_TRUE(p.run.setup.model->training());
}

TEST(Scoring, TheAverageOfTheWeightsIsScoredBesideTheModel) {
  const Workplace w;
  comm::WorldOfOne alone;
  Config c = small_config();
  c.ema = 0.5;
  c.lr = 1;
  Parts p(alone, c, w.path() / "run");
  for (int i = 0; i < 5; ++i) p.step();  // the average stays where it began
  ASSERT_TRUE(p.scoring.score());
  ASSERT_TRUE(p.scoring.latest_of_average());
  EXPECT_NE(p.scoring.latest_of_average()->loss, p.scoring.latest()->loss);
  testing_programs::expect_has(p.scoring.line(), "  average's ");
  p.scoring.leave_average();
  EXPECT_TRUE(w.has("run/model_ema.safetensors"));
}

TEST(Scoring, PatienceIsOverAfterSoManyEpochsWithoutABetterOne) {
  const Workplace w;
  comm::WorldOfOne alone;
  Config c = small_config();
  c.eval_every = 1, c.patience = 1, c.epochs = 5;
  Parts p(alone, c, w.path() / "run");
  p.run.k = 7;
  ASSERT_TRUE(p.scoring.is_due());
  ASSERT_TRUE(p.scoring.score());
  EXPECT_FALSE(p.scoring.is_enough());
  p.run.k = 14;
  ASSERT_TRUE(p.scoring.score());
  EXPECT_TRUE(p.scoring.is_enough());
  testing_programs::expect_has(p.said(), "no better evaluation than that of epoch 1");
}

TEST(Scoring, AllWorkersScoreTheMeanOfTheirModelsAndKeepTheirOwn) {
  const Workplace w;
  std::vector<Score> scores(2);
  comm::in_local_world(2, [&](comm::Communicator& comm) {
    Config c = small_config();
    c.algorithm = "local-sgd";
    c.lr = 0.5;
    Parts p(comm, c, w.path() / "run");
    p.step();  // each on its own images
    const Tensor own = p.learning.flat.x.clone();
    ASSERT_TRUE(p.scoring.score());
    scores[size_t(comm.rank())] = *p.scoring.latest();
    EXPECT_GT(*p.scoring.take_event()->consensus_distance, 0);
    EXPECT_EQ(p.scoring.best().has_value(), comm.rank() == 0);
    EXPECT_EQ(parameter_hash(p.learning.flat, own), parameter_hash(p.learning.flat, p.learning.flat.x));
    p.scoring.hash_workers();
    ModelFigures m;
    p.scoring.describe(m);
    ASSERT_EQ(m.worker_hashes.size(), 2u);
    EXPECT_NE(m.worker_hashes[0], m.worker_hashes[1]);
    EXPECT_EQ(m.worker_hashes[size_t(comm.rank())], parameter_hash(p.learning.flat, own));
  });
  EXPECT_EQ(scores[0].images, 20);
  EXPECT_EQ(scores[0].loss, scores[1].loss);
  EXPECT_EQ(scores[0].top1, scores[1].top1);
}

}  // namespace
}  // namespace skein::apps
