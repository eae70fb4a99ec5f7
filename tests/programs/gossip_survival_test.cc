// gossip_avg loses workers that are killed, stopped or leave, over shared memory and UCX, as real processes.
#include <nlohmann/json.hpp>

#include "apps/model/vectors.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using nlohmann::json;
using testing_programs::Ended;

// Four workers average until they are told to stop; `deed` is done to one of them ($W) meanwhile, and the
// others are told to stop after some time. How long they need depends on the machine's other work and is
// known only at the end, so it is repeated with more time until the error is small.
class Survival : public ::testing::TestWithParam<std::string> {
 protected:
  Ended disturb(const std::string& flags, const std::string& deed) {
    for (const char* time : {"0.5", "2", "8"}) {
      const Ended e = disturb(flags, deed, time);
      const json r = json::parse(place_.read("log"), nullptr, false);
      if (!r.is_object() || double(r["error"]) < 1e-5) return e;
    }
    return disturb(flags, deed, "30");
  }
  Ended disturb(const std::string& flags, const std::string& deed, const std::string& time) {
    return place_.run(
        // UCX has no shared memory here (comm/transports/ways.cc).
        "export SKEIN_UCX_TLS=tcp\n"
        "timeout 120 $GOSSIP --workers 4 --size 5000 --rounds 100000000 --output out{rank}.npy --deadline 4 "
        "--json --transport " +
        GetParam() + " " + flags +
        " > log & P=$!\n"
        "wait_for() { for i in $(seq 1200); do eval \"$1\" && return; sleep 0.05; done; }\n"
        // All four catch SIGINT, so they have met: the second bit of the mask. One list serves both
        // questions, because workers may start between two.
        "catch() { L=$(pgrep -P $P); ALL=$(pgrep -P ${L:-0}); W=$(echo \"$ALL\" | sed -n " +
        std::to_string(victim_ + 1) +
        "p)\n"
        "[ \"$(for w in $ALL; do cat /proc/$w/status; done 2>/dev/null | "
        "grep -c 'SigCgt:.*[2367abef]$')\" = 4 ]; }\n"
        "wait_for catch; sleep 0.5\n" +
        deed + "\nwait_for \"grep -qs 'membership epoch [23]' .err\"\nsleep " + time +
        "; kill -INT $L; wait $P; echo status $?");
  }
  json result() { return json::parse(place_.read("log")); }
  void expect_three(const Ended& e, double lost_w) {
    std::vector<int> living;
    for (int r = 0; r < 4; ++r)
      if (r != victim_) living.push_back(r);
    ASSERT_NE(e.out.find("status 130"), std::string::npos) << e.out << e.err;
    const json r = result();
    EXPECT_EQ(r["living"], json(living));
    ASSERT_EQ(r["epochs"].size(), 2u);
    const json &first = r["epochs"][0], &second = r["epochs"][1];
    EXPECT_NEAR(first["mass_begin"]["w"], 4, 1e-6);
    if (lost_w >= 0) { EXPECT_NEAR(first["mass_end"]["w"], 4 - lost_w, 1e-6); }
    EXPECT_NEAR(second["mass_begin"]["w"], 3, 1e-6);
    EXPECT_NEAR(second["mass_end"]["w"], 3, 1e-5);
    EXPECT_NEAR(second["mass_end"]["x"], double(second["mass_begin"]["x"]), 1e-3);
    EXPECT_LT(double(r["error"]), 1e-5);
    EXPECT_NE(e.err.find(text("rank ", victim_)), std::string::npos) << e.err;
    EXPECT_NE(e.err.find("membership epoch 2"), std::string::npos) << e.err;
    EXPECT_FALSE(place_.has(text("out", victim_, ".npy")));
    const auto a = apps::read_vectors(path("out1.npy")), b = apps::read_vectors(path("out3.npy"));
    for (int64_t i = 0; i < a.flat.size(); ++i)
      ASSERT_NEAR(a.flat.data<float>()[i], b.flat.data<float>()[i], 1e-5) << i;
    EXPECT_EQ(json::parse(place_.read("out1.npy.json"))["living"], r["living"]);
  }
  std::string path(const std::string& name) { return (place_.path() / name).string(); }
  testing_programs::Workplace place_;
  int victim_ = 2;
};

TEST_P(Survival, AKilledWorkerIsMissedAndTheRestGoOn) {
  expect_three(disturb("--topology ring", "kill -KILL $W"), -1);
  expect_three(disturb("--algorithm pairwise", "kill -KILL $W"), 1);
}

TEST_P(Survival, TheFirstWorkerMayBeLostAsWell) {
  victim_ = 0;
  expect_three(disturb("--topology ring", "kill -KILL $W"), -1);
  expect_three(disturb("--topology ring", "kill -TERM $W"), 0);
}

// The second dies while the others take in what the first has left behind, or before, or after.
TEST_P(Survival, TwoMayBeLostOneAfterTheOther) {
  for (const char* pause : {"0", "0.01", "0.03", "0.1"}) {
    const Ended e = disturb("--topology ring", text("V=$(echo \"$ALL\" | sed -n 2p); kill -KILL $W; sleep ",
                                                    pause, "; kill -KILL $V"));
    ASSERT_NE(e.out.find("status 130"), std::string::npos) << pause << e.out << e.err;
    const json r = result();
    EXPECT_EQ(r["living"], json::parse("[0, 3]")) << pause << e.err;
    EXPECT_NEAR(r["epochs"].back()["mass_begin"]["w"], 2, 1e-6) << pause;
    EXPECT_NEAR(r["epochs"].back()["mass_end"]["w"], 2, 1e-5) << pause;
    EXPECT_LT(double(r["error"]), 1e-5) << pause;
    const auto a = apps::read_vectors(path("out0.npy")), b = apps::read_vectors(path("out3.npy"));
    for (int64_t i = 0; i < a.flat.size(); ++i)
      ASSERT_NEAR(a.flat.data<float>()[i], b.flat.data<float>()[i], 1e-5) << pause << ' ' << i;
  }
}

TEST_P(Survival, AWorkerThatLeavesGivesAwayWhatItHolds) {
  expect_three(disturb("--topology ring", "kill -TERM $W"), 0);
}

TEST_P(Survival, AStoppedWorkerIsGivenUpAndToldSoWhenItWakes) {
  const Ended e = disturb("--topology ring",
                          "kill -STOP $W; wait_for \"grep -qs 'membership epoch 2' .err\"; kill -CONT $W");
  EXPECT_NE(place_.read("log").find("\"living\":[0,1,3]"), std::string::npos)
      << e.out << e.err << place_.read("log");
  EXPECT_NE(e.err.find("the others go on without this worker"), std::string::npos) << e.err;
  EXPECT_FALSE(place_.has("out2.npy"));
}

TEST_P(Survival, AStoppedWorkerDoesNotHoldUpTheEnd) {
  const Ended e = disturb("--topology ring", "kill -STOP $W");
  EXPECT_NE(e.out.find("status 130"), std::string::npos) << e.out << e.err;
  EXPECT_NE(e.err.find("worker 2 has not ended 4 s after the others and is killed"), std::string::npos)
      << e.err;
  EXPECT_EQ(result()["living"], json::parse("[0, 1, 3]"));
}

INSTANTIATE_TEST_SUITE_P(GossipAvg, Survival, ::testing::Values("shared", "ucx"),
                         [](const auto& way) { return way.param; });

}  // namespace
}  // namespace skein
