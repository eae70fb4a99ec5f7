// The elastic trainer in simulated worlds: workers die, hang, leave, join and are cut off at random, and the
// run ends as if nothing had happened. Every row of optim/strategies.def that can be elastic is played.
//
//   SKEIN_SEED=33 SKEIN_SEEDS=100 apps_tests --file=elastic_sim_test --gtest_filter='*/osgp'
//
// plays seeds 33 to 132 of one row, and says what happened in each; with SKEIN_LOG=1 at every moment.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/elastic/cases.h"
#include "tests/support/elastic/fate.h"

namespace skein::apps {
namespace {

using comm::sim::World;

constexpr uint64_t kSeeds = 20;  // of each row, others for each; a run takes 0.12 s of a processor

// That have found a fault, beside the others.
const std::map<std::string, std::vector<uint64_t>> kTelling = {
    {"allreduce", {600549}}, {"local-sgd", {1143}},     {"d-psgd", {1143}}, {"streaming-diloco", {2167}},
    {"noloco", {2183}},      {"gem", {100286, 600276}}, {"osgp", {640161}}};

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* const words = std::getenv(variable);
  return words ? std::strtoull(words, nullptr, 10) : otherwise;
}

class ElasticRow : public ::testing::TestWithParam<std::string> {
 protected:
  // Returns what happened, in words.
  FateCounts play(uint64_t seed) {
    const InMemory w;
    const bool tells = std::getenv("SKEIN_LOG");
    World world(elastic_world(seed, tells));
    const int workers = 2 + int(seed % 8);
    ElasticJob job(world, elastic_config(GetParam(), workers), w.path() / "run", seed);
    job.found(workers);
    Fate fate(world, job, seed);
    world.run();
    if (tells) std::puts(world.log().c_str());
    expect_what_is_promised(GetParam(), job.record);
    expect_told_changes(w.path() / "run", job.record);
    if (std::getenv("SKEIN_SEED"))
      std::printf("%s seed %d: %s; %d changes, %d at the end, %.1f s, %d messages\n", GetParam().c_str(),
                  int(seed), fate.counts.words().c_str(), int(job.record.periods.size()),
                  int(job.record.ends.size()), world.now(), int(world.messages()));
    return fate.counts;
  }
  // What is to be outlived has happened.
  static void TearDownTestSuite() {
    std::printf("%s\n", happened_.words().c_str());
    if (std::getenv("SKEIN_SEED") || played_ < kEnoughRows) return;
    for (const int events : {happened_.kills, happened_.silences, happened_.hangs, happened_.cuts,
                             happened_.leaves, happened_.joins})
      EXPECT_GT(events, 0) << happened_.words();
  }
  static constexpr int kEnoughRows = 5;  // ctest plays them in shards
  static inline FateCounts happened_;
  static inline int played_ = 0;
};

TEST_P(ElasticRow, EndsAsIfNothingHadHappened) {
  const std::vector<std::string> rows = elastic_rows();
  const uint64_t row = uint64_t(std::find(rows.begin(), rows.end(), GetParam()) - rows.begin());
  const uint64_t first = number_from("SKEIN_SEED", row * kSeeds);
  const uint64_t count = number_from("SKEIN_SEEDS", std::getenv("SKEIN_SEED") ? 1 : kSeeds);
  std::vector<uint64_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), first);
  if (const auto more = kTelling.find(GetParam()); more != kTelling.end() && !std::getenv("SKEIN_SEED"))
    seeds.insert(seeds.end(), more->second.begin(), more->second.end());
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(text("replay: SKEIN_SEED=", seed, ' ',
                      std::filesystem::read_symlink("/proc/self/exe").string(),
                      " --file=elastic_sim_test --gtest_filter='*.",
                      ::testing::UnitTest::GetInstance()->current_test_info()->name(), "'"));
    try {
      happened_ += play(seed);
    } catch (const std::exception& e) { ADD_FAILURE() << e.what(); }
  }
  ++played_;
}

std::string name_of(const ::testing::TestParamInfo<std::string>& row) {
  std::string name = row.param;
  std::replace(name.begin(), name.end(), '-', '_');
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Trainer, ElasticRow, ::testing::ValuesIn(elastic_rows()), name_of);

}  // namespace
}  // namespace skein::apps
