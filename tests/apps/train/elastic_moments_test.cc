// Deaths at awkward moments: at any message of a run, its first ones, its evaluations, checkpoints and
// last exchanges included, and at any message of a change of the membership. And the law of twenty deaths
// and twenty newcomers.
//
//   SKEIN_ROW=sgp SKEIN_MOMENTS=2000 apps_tests --file=elastic_moments_test
//
// plays so many moments of one row.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/elastic/cases.h"
#include "tests/support/model_files.h"

namespace skein::apps {
namespace {

using comm::sim::Id;
using comm::sim::World;
using Plan = std::function<void(World&, ElasticJob&)>;

std::string row_to_play() {
  const char* const row = std::getenv("SKEIN_ROW");
  return row ? row : "allreduce";
}
uint64_t moments(uint64_t otherwise) {
  const char* const n = std::getenv("SKEIN_MOMENTS");
  return n ? std::strtoull(n, nullptr, 10) : otherwise;
}

Config short_run(int workers) {
  Config c = elastic_config(row_to_play(), workers);
  c.epochs = 2;
  c.checkpoint_every = "3steps";
  return c;
}

struct Played {
  ElasticRecord record;
  uint64_t messages = 0;
  double seconds = 0;
};

Played play(const Config& c, const std::string& directory, const Plan& plan) {
  World world(elastic_world(1));
  ElasticJob job(world, c, directory, 1);
  job.found(int(c.workers));
  plan(world, job);
  world.run();
  return {job.record, world.messages(), world.now()};
}

Played play_short(int workers, const Plan& plan) {
  const InMemory w;
  return play(short_run(workers), w.path() / "run", plan);
}

// The worker of this number among those who are members then.
void kill_at(World& world, ElasticJob& job, uint64_t message, size_t which) {
  world.at_message(message, [&job, which] {
    const std::vector<Id> members = job.members();
    if (!members.empty()) job.kill(members[which % members.size()], ElasticJob::Death::kHangUp);
  });
}

// Plans of so many moments, evenly over [from, to).
void at_moments(uint64_t count, uint64_t from, uint64_t to, int workers,
                const std::function<void(World&, ElasticJob&, uint64_t message, size_t which)>& plan) {
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t message = from + (to - from) * i / count;
    SCOPED_TRACE(text("at message ", message));
    try {
      const Played p = play_short(workers, [&](World& w, ElasticJob& j) { plan(w, j, message, size_t(i)); });
      expect_what_is_promised(row_to_play(), p.record);
    } catch (const std::exception& e) { ADD_FAILURE() << e.what(); }
  }
}

uint64_t messages_of_a_run(int workers) {
  return play_short(workers, [](World&, ElasticJob&) {}).messages;
}

TEST(ElasticMoments, ADeathAtAnyMessageOfARunIsOutlived) {
  at_moments(moments(12), 1, messages_of_a_run(3), 3, kill_at);
}

// In the middle of a run `change` begins a change of the membership, and a worker dies at any message of it.
void expect_deaths_are_outlived(int workers, const std::function<void(ElasticJob&)>& change) {
  const uint64_t begins = messages_of_a_run(workers) / 2;
  uint64_t ends = 0;
  const auto begin = [&](World& w, ElasticJob& j) { w.at_message(begins, [&] { change(j); }); };
  play_short(workers, [&](World& w, ElasticJob& j) {
    begin(w, j);
    w.at_message(begins, [&] { w.at(w.now() + 0.3, [&] { ends = w.messages(); }); });
  });
  ASSERT_GT(ends, begins);
  at_moments(moments(12), begins + 1, ends, workers,
             [&](World& w, ElasticJob& j, uint64_t message, size_t which) {
               begin(w, j);
               kill_at(w, j, message, which);
             });
}

TEST(ElasticMoments, ASecondDeathAtAnyMessageOfAChangeIsOutlived) {
  expect_deaths_are_outlived(5, [](ElasticJob& j) { j.kill(j.members().at(1), ElasticJob::Death::kHangUp); });
}

TEST(ElasticMoments, ADeathAtAnyMessageOfANewcomersEntranceIsOutlived) {
  expect_deaths_are_outlived(4, [](ElasticJob& j) { j.join(); });
}

// The others have been told of it, and wait for it to connect. It has the number after the founders'.
TEST(ElasticMoments, ANewcomerThatEndsBeforeItConnectsIsNotWaitedFor) {
  constexpr int kWorkers = 4, kMoments = 30;
  constexpr double kJoins = 0.3, kStep = 0.01;
  const double whole = play_short(kWorkers, [](World&, ElasticJob&) {}).seconds;
  for (int i = 0; i < kMoments; ++i) {
    SCOPED_TRACE(text(i * kStep, " s after it knocks"));
    const Played p = play_short(kWorkers, [&](World& w, ElasticJob& j) {
      w.at(kJoins, [&] { j.join(); });
      w.at(kJoins + i * kStep, [&] { EXPECT_TRUE(j.kill(Id(kWorkers), ElasticJob::Death::kHangUp)); });
    });
    expect_what_is_promised(row_to_play(), p.record);
    EXPECT_LT(p.seconds, whole + 1);
  }
}

// ---- the weight that goes with the lost
// -----------------------------------------------------------------------------

TEST(ElasticTrainer, SaysHowMuchOfPushSumsWeightWentWithTheLost) {
  const InMemory w;
  const Config c = elastic_config("sgp", 4);
  const Played p = play(c, w.path() / "run", [](World& world, ElasticJob& job) {
    world.at(0.6, [&] { job.kill(job.members().at(1), ElasticJob::Death::kHangUp); });
  });
  expect_what_is_promised("sgp", p.record);
  const std::vector<Json> changes = events(w.path() / "run", "membership");
  ASSERT_EQ(changes.size(), 1u);
  const std::vector<double>& left = p.record.periods.at(1).left_with;
  ASSERT_EQ(left.size(), 3u);
  const double lost = 4 - std::accumulate(left.begin(), left.end(), 0.0);
  EXPECT_GT(lost, 0.01);
  EXPECT_NEAR(changes[0].at("weight_lost").get<double>(), lost, 1e-9);
}

// ---- after how long a loss is noticed
// ------------------------------------------------------------------------------------------------

// What the run says of its last change, when this happens after a worker has joined.
Json last_change(const std::function<void(World&, ElasticJob&)>& happens) {
  const InMemory w;
  Config c = elastic_config("allreduce", 5);
  c.epochs = 16;
  const Played p = play(c, w.path() / "run", [&](World& world, ElasticJob& job) {
    world.at(0.3, [&] { job.join(); });
    world.at(3, [&] { happens(world, job); });
  });
  expect_what_is_promised("allreduce", p.record);
  const Json all = Json::parse(read_file(w.path() / "run" / "summary.json")).at("recoveries");
  EXPECT_EQ(all.size(), 2u) << all.dump();
  return all.back();
}

TEST(ElasticTrainer, SaysAfterHowLongALossWasNoticed) {
  constexpr auto kHangUp = ElasticJob::Death::kHangUp, kSilence = ElasticJob::Death::kSilence;
  const Json killed = last_change([](World&, ElasticJob& j) { j.kill(j.members().at(1), kHangUp); });
  const comm::sim::Weather weather = elastic_world(1).weather;
  EXPECT_NEAR(killed.at("detected_s").get<double>(), weather.latency + weather.jitter / 2,
              weather.jitter / 2 + 1e-6);
  const Json silent = last_change([](World&, ElasticJob& j) { j.kill(j.members().at(0), kSilence); });
  EXPECT_NEAR(silent.at("detected_s").get<double>(), kElasticSilence, 1e-6);
  const Json hung = last_change([](World&, ElasticJob& j) { j.hang(j.members().at(2), 60); });
  EXPECT_NEAR(hung.at("detected_s").get<double>(), kElasticSilence, 1e-6);
  const Json both = last_change([](World&, ElasticJob& j) {
    const std::vector<Id> members = j.members();
    j.kill(members.at(1), kHangUp), j.kill(members.at(3), kSilence);
  });
  EXPECT_EQ(both.at("who").size(), 2u);
  EXPECT_NEAR(both.at("detected_s").get<double>(), kElasticSilence, 1e-6) << "of two losses, the later";
  const Json joined = last_change([](World&, ElasticJob& j) { j.join(); });
  EXPECT_FALSE(joined.contains("detected_s")) << joined.dump();
}

// ---- what only worker 0 knows of a center that it keeps ------------------------------------------

TEST(ElasticTrainer, DealsAgainWhatOnlyALostWorkerZeroHadGivenToItsCenter) {
  const InMemory w;
  const Config c = elastic_config("gem", 3);
  const Played p = play(c, w.path() / "run", [](World& world, ElasticJob& job) {
    world.at(0.6, [&] { world.hang(1), world.hang(2); });
    world.at(1.2, [&] { job.kill(0, ElasticJob::Death::kHangUp); });
    world.at(1.3, [&] { world.wake(1), world.wake(2); });
  });
  expect_what_is_promised("gem", p.record);
  EXPECT_GT(expect_no_sample_lost(p.record), 3 * c.batch_size)
      << "more than the steps that it had not told of";
}

// ---- the law
// -----------------------------------------------------------------------------------------------------

constexpr int kChanges = 20;  // of each kind

Config long_run() {
  Config c = elastic_config("allreduce", 4);
  c.epochs = 30;
  c.log_every = 1;
  return c;
}

std::map<int64_t, double> losses(const std::string& run) {
  std::map<int64_t, double> all;
  for (const Json& e : events(run, "step"))
    all[e.at("step")] =
        e.at("loss").is_object() ? e.at("loss").at("mean").get<double>() : e.at("loss").get<double>();
  return all;
}

// Every few steps a worker joins, or any of them dies.
class Churn {
 public:
  Churn(World& world, ElasticJob& job) : world_(world), job_(job) { look(); }
  int kills = 0, joins = 0;

 private:
  void look() {
    if (kills == kChanges || job_.is_over()) return;
    if (job_.furthest() >= 3 * (kills + joins + 1)) change();
    world_.at(world_.now() + 0.01, [this] { look(); });
  }
  void change() {
    if (joins <= kills) return job_.join(), void(++joins);
    const std::vector<Id> members = job_.members();
    if (members.size() > 3)
      kills += job_.kill(members[size_t(kills) % members.size()], ElasticJob::Death::kHangUp);
  }
  World& world_;
  ElasticJob& job_;
};

TEST(ElasticLaw, TwentyDeathsAndTwentyNewcomersLeaveTheLossCurveOfAnUndisturbedRun) {
  const InMemory w;
  const std::string whole = w.path() / "whole", churned = w.path() / "churned";
  play(long_run(), whole, [](World&, ElasticJob&) {});
  std::optional<Churn> churn;
  const Played p =
      play(long_run(), churned, [&](World& world, ElasticJob& job) { churn.emplace(world, job); });
  EXPECT_EQ(churn->kills, kChanges);
  EXPECT_EQ(churn->joins, kChanges);
  expect_what_is_promised("allreduce", p.record);
  const auto expected = losses(whole), seen = losses(churned);
  EXPECT_EQ(int64_t(expected.size()), p.record.last);
  EXPECT_GT(seen.size(),
            expected.size() - 2 * kChanges);  // what was due when a change began is lost with who measured it
  for (const auto& [step, loss] : seen) EXPECT_NEAR(loss, expected.at(step), 1e-5) << "step " << step;
  EXPECT_LT(testing_programs::models_differ(churned, whole), 1e-5);
}

}  // namespace
}  // namespace skein::apps
