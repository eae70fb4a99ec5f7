// What every row with a server is tested for: training, refusals, recordings.
#include "tests/support/files.h"
#include "tests/support/servers.h"

namespace skein {
namespace {

using namespace trainee;

const std::vector<std::string> kServerRows = {"downpour",    "dynsgd",       "agn",
                                              "easgd-async", "eamsgd-async", "gem"};

// ---- every row, free running
// ---------------------------------------------------------------------------------------- Theta leans to
// whom the machine lets commit most: somewhere between what the workers want (1 to 4), from 0.
TEST(EveryServerRow, TrainsASmallProblemFreely) {
  const Problem p{.lr = 0.03f, .noise = 0.1f, .curvature_spread = 0.5f};
  for (const std::string& row : kServerRows)
    for (bool dedicated : {false, true}) {
      const bool elastic = row.find("gd-async") != std::string::npos;
      const auto o = elastic ? options({{"tau", "2"}, {"alpha", "0.2"}}) : optim::Options();
      const Ending e = run(p, row, o, 4, dedicated, {0, 100, 300});
      for (const auto& theta : e.theta) {
        EXPECT_EQ(theta, e.theta[0]) << row;
        for (size_t i = 0; i < theta.size(); ++i)
          EXPECT_NEAR(theta[i], 2.5 + double(i) / 16, 1.7) << row << ' ' << dedicated;
      }
    }
}

TEST(EveryServerRow, RunsAlone) {
  for (const std::string& row : kServerRows)
    for (bool dedicated : {false, true}) {
      const Ending e = run({}, row, options({{"alpha", "0.5"}, {"tau", "1"}}), 1, dedicated, {0, 150});
      EXPECT_NEAR(e.theta[0][0], 1, 0.05) << row;
    }
}

TEST(EveryServerRow, RefusesWhatItCannotDo) {
  for (const char* row : {"downpour", "agn", "easgd-async"})
    EXPECT_THROW(optim::make_strategy(row, options({{"tau", "0"}}), 2), BadOption);
  EXPECT_THROW(optim::make_strategy("gem", options({{"gem-gradient-at", "there"}}), 2), BadOption);
  EXPECT_THROW(optim::make_strategy("gem", options({{"gem-momentum", "1"}}), 2), BadOption);
  EXPECT_THROW(optim::make_strategy("gem", options({{"servers", "many"}}), 2), BadOption);
  EXPECT_THROW(optim::make_strategy("easgd-async", options({{"alpha", "1.5"}}), 2), BadOption);
}

class Recorded : public ::testing::Test {
 protected:
  optim::Options with(const char* how) const {
    optim::Options o = options({{"tau", "2"}, {"alpha", "0.2"}});
    o.set(how, folder_ / "order");
    return o;
  }
  const Problem p_{.momentum = 0.9f, .decay = 0.01f, .noise = 1, .start_spread = 0.5f};
  testing::ScratchDir folder_;
};

TEST_F(Recorded, IsDoneAgainBitForBit) {
  for (const std::string& row : kServerRows)
    for (bool dedicated : {false, true}) {
      const Ending once = run(p_, row, with("record"), 5, dedicated, {0, 24});
      EXPECT_EQ(run(p_, row, with("replay"), 5, !dedicated, {0, 24}), once) << row;
      EXPECT_EQ(run(p_, row, with("replay"), 5, dedicated, {0, 24}), once) << row;
    }
}

TEST_F(Recorded, ResumedAtAMeetingEqualsUninterrupted) {
  for (const std::string& row : kServerRows)
    for (bool dedicated : {false, true}) {
      std::vector<optim::Snapshot> whole(3), part(3), parts(3);
      const Ending once = run(p_, row, with("record"), 3, dedicated, {0, 5, 12}, nullptr, &whole);
      run(p_, row, with("replay"), 3, dedicated, {0, 5}, nullptr, &part);
      EXPECT_EQ(run(p_, row, with("replay"), 3, !dedicated, {5, 12}, &part, &parts), once) << row;
      EXPECT_TRUE(parts == whole) << row;
    }
}

// Only what they give each other in turns is rounded.
TEST_F(Recorded, ResumedOnANarrowWireEqualsUninterrupted) {
  std::vector<std::pair<std::string, optim::Options>> all;
  for (const std::string& row : kServerRows) all.emplace_back(row, optim::Options());
  all.emplace_back("downpour", options({{"server-rule", "delayed-nesterov"}}));
  for (const auto& [row, o] : all)
    for (bool dedicated : {false, true}) {
      const auto with_order = [&, o = o](const char* how) {
        optim::Options all = o;
        all.set(how, folder_ / "order");
        return all;
      };
      std::vector<optim::Snapshot> whole(3), part(3), parts(3);
      const Ending once =
          run(p_, row, with_order("record"), 3, dedicated, {0, 5, 12}, nullptr, &whole, kBF16);
      run(p_, row, with_order("replay"), 3, dedicated, {0, 5}, nullptr, &part, kBF16);
      const Ending again = run(p_, row, with_order("replay"), 3, !dedicated, {5, 12}, &part, &parts, kBF16);
      EXPECT_EQ(again, once) << row;
      EXPECT_TRUE(parts == whole) << row;
      for (const auto& theta : once.theta) EXPECT_EQ(theta, once.theta[0]) << row;
    }
}

TEST_F(Recorded, ARecordingGoesOnFromACheckpoint) {
  std::vector<optim::Snapshot> part(3);
  run(p_, "gem", with("record"), 3, false, {0, 5}, nullptr, &part);
  run(p_, "gem", with("record"), 3, false, {5, 9}, &part);  // is forgotten
  const Ending second = run(p_, "gem", with("record"), 3, false, {5, 12}, &part);
  EXPECT_EQ(run(p_, "gem", with("replay"), 3, true, {0, 12}), second);
}

TEST_F(Recorded, AFailureOfTheServerIsEverybodys) {
  EXPECT_THROW(run(p_, "gem", with("replay"), 3, true, {0, 2}), BadFile);  // there is no recording
  EXPECT_THROW(run(p_, "gem", with("replay"), 3, false, {0, 2}), Error);
  run(p_, "gem", with("record"), 3, false, {0, 4});
  try {
    run(p_, "gem", with("replay"), 3, true, {0, 6});
    FAIL() << "the recording is too short";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("ends after 12"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace skein
