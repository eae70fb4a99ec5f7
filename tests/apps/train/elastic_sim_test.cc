// The elastic trainer in simulated worlds: workers die and join at random, and the run ends as if nothing had happened.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "tests/support/elastic.h"
#include "tests/support/model_files.h"

namespace skein::apps {
namespace {

using comm::sim::Id;
using comm::sim::World;

constexpr int64_t kTau = 3;

Config config_of(const std::string& row) {
  Config c = small_config();
  c.epochs = 5;
  c.batch_size = 3;
  c.algorithm = row;
  c.workers = 4;
  c.elastic = "on";
  if (std::strstr(optim::strategy_row(row).flags, "tau")) c.of_algorithm["tau"] = text(kTau);
  if (row == "streaming-diloco") c.of_algorithm["delay"] = "1";
  if (row == "qsr") c.of_algorithm["qsr-c"] = "0.1";
  if (row == "post-local") c.of_algorithm["switch-step"] = "7";
  return c;
}

struct Told {
  std::map<Id, Outcome> ends;
  std::vector<std::string> troubles;
  std::map<uint32_t, ElasticJob::Left> left;
  std::map<uint32_t, ElasticJob::Stretch> ledger;
  double seconds = 0;
  int kills = 0, joins = 0;
};

// Events at random: two thirds kill, of these a few in silence; others join. Some come while the last one is dealt with, and
// some while the run ends.
class Fate {
 public:
  Fate(World& world, ElasticJob& job, uint64_t seed, Told& told)
      : world_(world), job_(job), random_(seed), told_(told) {
    events_ = 2 + int(random_() % 5);
    world_.at(1 + draw(1), [this] { strike(); });
    if (random_() % 2) await_the_end();
  }

 private:
  double draw(double most) { return std::uniform_real_distribution<double>(0, most)(random_); }
  void await_the_end() {
    const bool ends = job_.is_ending();
    if (ends) events_ += 1 + int(random_() % 2);
    world_.at(world_.now() + (ends ? draw(0.6) : 0.05), [this, ends] { ends ? strike() : await_the_end(); });
  }
  void strike() {
    if (events_ <= 0) return;
    const std::vector<Id> members = job_.members();
    if (random_() % 3 == 0 && members.size() < 6) {
      job_.join();
      ++told_.joins;
    } else if (!members.empty()) {
      const auto how = random_() % 6 == 0 ? World::Death::kSilence : World::Death::kHangUp;
      const Id victim = members[random_() % 3 ? random_() % members.size() : 0];  // the first is the proposer
      told_.kills += job_.kill(victim, how);
    }
    if (--events_ > 0) world_.at(world_.now() + (random_() % 2 ? draw(0.8) : draw(4)), [this] { strike(); });
  }

  World& world_;
  ElasticJob& job_;
  std::mt19937_64 random_;
  Told& told_;
  int events_;
};

Told train(const Config& c, const std::string& directory, uint64_t seed, bool disturbed) {
  Told told;
  World world({.weather = {.seed = seed, .latency = 0.005, .jitter = 0.005, .bandwidth = 1e8},
               .time_up = 3600,
               .keeps_log = false});
  ElasticJob job(world, c, directory, seed);
  job.found(4);
  std::optional<Fate> fate;
  if (disturbed) fate.emplace(world, job, seed, told);
  world.run();
  told.seconds = world.now();
  told.ends = job.ends, told.troubles = job.troubles, told.left = job.left;
  told.ledger = job.ledger;
  return told;
}

// The members of an epoch that all were there at its end.
void expect_whole_weight(const Told& t) {
  for (const auto& [epoch, l] : t.left)
    if (l.weights.size() == l.members) {
      EXPECT_NEAR(std::accumulate(l.weights.begin(), l.weights.end(), 0.0), double(l.members), 1e-9)
          << "epoch " << epoch;
    }
}

// Of the steps that were not taken back, whoever took them. Those of the lost are among them.
void expect_each_sample_once(const Told& t) {
  std::map<std::pair<int64_t, int64_t>, int> counted;  // by epoch of the data and index
  int64_t at = 0, epochs = 0;
  for (const auto& [epoch, s] : t.ledger) {
    ASSERT_EQ(s.from, at) << "epoch " << epoch << " of the membership";
    for (; at < s.to; ++at)
      for (int r = 0; r < s.workers; ++r)
        for (int64_t i = 0; i < s.portions->samples(at, r); ++i)
          ++counted[{at / s.portions->steps_per_epoch(), s.portions->index(at, r, i)}];
    epochs = at / s.portions->steps_per_epoch();
  }
  EXPECT_EQ(at, ElasticJob::kLast);
  int64_t samples = 0;
  for (const auto& [which, times] : counted) {
    EXPECT_EQ(times, 1) << "sample " << which.second << " of epoch " << which.first;
    samples += which.first == 0;
  }
  EXPECT_EQ(int64_t(counted.size()), epochs * samples);
}

// From SKEIN_SEED on, SKEIN_SEEDS runs of each row.
uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* const words = std::getenv(variable);
  return words ? std::strtoull(words, nullptr, 10) : otherwise;
}

void expect_end_of_all(const std::string& row, uint64_t seeds,
                       const std::function<void(const Told&, const std::string&)>& more) {
  const uint64_t first = number_from("SKEIN_SEED", 17);
  int kills = 0, joins = 0;
  for (uint64_t seed = first; seed < first + number_from("SKEIN_SEEDS", seeds); ++seed) {
    SCOPED_TRACE(text("replay: SKEIN_SEED=", seed,
                      " SKEIN_SEEDS=1 apps_tests --gtest_filter='ElasticTrainer.*'; row ", row));
    const Workplace w;
    const Config c = config_of(row);
    const Told t = train(c, w.path() / "run", seed, true);
    kills += t.kills, joins += t.joins;
    for (const std::string& why : t.troubles) ADD_FAILURE() << why;
    ASSERT_FALSE(t.ends.empty());
    for (const auto& [id, out] : t.ends) {
      EXPECT_FALSE(out.interrupted) << "worker " << id << ": " << out.why;
      EXPECT_EQ(out.step, ElasticJob::kLast) << "worker " << id;
    }
    if (!optim::strategy_row(row)
             .asynchronous()) {  // some weight is on its way, and steps are each worker's own
      expect_whole_weight(t);
      expect_each_sample_once(t);
    }
    if (more) more(t, w.path() / "run");
    if (std::getenv("SKEIN_SEED"))
      std::printf("%s seed %d: %d kills, %d joins, %d changes, %d at the end, %.1f s\n", row.c_str(),
                  int(seed), t.kills, t.joins, int(t.left.size()), int(t.ends.size()), t.seconds);
  }
  if (std::getenv("SKEIN_SEED")) return;
  EXPECT_GT(kills, 0);
  EXPECT_GT(joins, 0);
}

TEST(ElasticTrainer, OfAllreduceGivesTheModelOfAnUndisturbedRun) {
  const Workplace w;
  const std::string whole = w.path() / "whole";
  const Told t = train(config_of("allreduce"), whole, 1, false);
  ASSERT_EQ(t.ends.size(), 4u);
  expect_end_of_all("allreduce", 12, [&](const Told& disturbed, const std::string& run) {
    std::set<std::string> hashes;
    for (const auto& [id, out] : disturbed.ends)
      if (!out.hash.empty()) hashes.insert(out.hash);  // else it was told that the run has ended
    EXPECT_EQ(hashes.size(), 1u);
    EXPECT_LT(testing_programs::models_differ(run, whole), 1e-5);
  });
}

TEST(ElasticTrainer, OfGossipEndsWithAllSteps) {
  for (const char* row : {"sgp", "d-psgd"}) expect_end_of_all(row, 7, {});
}

// Whatever a lost worker has done since the last meeting, which was of no use to the others, is done again.
TEST(ElasticTrainer, OfPeriodicRowsGoesOnFromAMeeting) {
  for (const char* row : {"local-sgd", "slowmo", "bmuf", "easgd", "eamsgd", "cocod", "overlap-local-sgd",
                          "diloco", "streaming-diloco"})
    expect_end_of_all(row, 4, [](const Told& t, const std::string&) {
      for (const auto& [epoch, s] : t.ledger)
        EXPECT_TRUE(s.to == ElasticJob::kLast || s.to % kTau == 0)
            << "epoch " << epoch << " ends with " << s.to;
    });
}

TEST(ElasticTrainer, OfRowsWhoseRoundsVaryEndsWithAllSteps) {
  for (const char* row : {"qsr", "post-local"}) expect_end_of_all(row, 4, {});
}

TEST(ElasticTrainer, OfAsynchronousRowsEndsWithAllSteps) {
  for (const char* row : {"osgp", "ad-psgd", "downpour", "gem", "easgd-async"}) expect_end_of_all(row, 4, {});
}

}  // namespace
}  // namespace skein::apps
