// gossip_avg as its users run it: printed graphs and figures, links, pages, and refusals.
#include <cmath>

#include "tests/programs/gossip_program.h"

namespace skein {
namespace {

TEST_F(GossipAvg, NamesDoNotControlTheTerminal) {
  const auto ended = gossip("--workers 1 --input $'\\x1b[2Jowned.npy'");
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("\\x1b[2Jowned.npy: cannot open this file"), std::string::npos) << ended.err;
}

TEST_F(GossipAvg, SaysWhetherRoundingOrTheGraphKeepsAToleranceOutOfReach) {
  const auto rounding = gossip("--workers 3 --size 1000 --tolerance 1e-30");
  EXPECT_EQ(rounding.status, 1);
  EXPECT_NE(rounding.err.find("--tolerance 1e-30 is out of reach"), std::string::npos) << rounding.err;
  EXPECT_NE(rounding.err.find("; float32 rounds numbers as large as 0."), std::string::npos) << rounding.err;
  for (int r = 0; r < 3; ++r) write_array(text("in", r, ".npy"), "<f4", {2}, {1e6 + 0.3 * r * r, double(r)});
  EXPECT_EQ(gossip("--workers 3 --input in{rank}.npy").status, 0) << "each number is judged by its own size";
  place_.write("apart.json", R"({"n": 4, "rounds": [{"edges": [[0,0,0.5],[0,1,0.5],[1,1,0.5],[1,0,0.5],
      [2,2,0.5],[2,3,0.5],[3,3,0.5],[3,2,0.5]]}]})");
  const auto graph = gossip("--workers 4 --size 10 --topology file:apart.json");
  EXPECT_EQ(graph.status, 1);
  EXPECT_NE(graph.err.find("brings the workers no closer to each other"), std::string::npos) << graph.err;
}

TEST_F(GossipAvg, ItsHelpNamesDefaultsAndExamples) {
  const auto ended = gossip("--help");
  EXPECT_EQ(ended.status, 0);
  for (const char* part :
       {"allreduce [push-sum]", "may take [60]", "ucx [auto]", "[1e-5 of each number's size",
        "Examples:\n  gossip_avg --workers 4 --input part{rank}.npy"})
    EXPECT_NE(ended.out.find(part), std::string::npos) << part << '\n' << ended.out;
}

TEST_F(GossipAvg, ExponentialOfFourIsExactAfterTwoRounds) {
  const json r = result("--workers 4 --size 1000 --rounds 2 --topology exponential --peers 1");
  EXPECT_EQ(r["rounds"], 2);
  EXPECT_LT(double(r["error"]), 1e-6);
  EXPECT_EQ(r["weights"], json::parse("[1.0, 1.0, 1.0, 1.0]"));
  EXPECT_GT(double(result("--workers 4 --size 1000 --rounds 1")["error"]), 0.01);
}

TEST_F(GossipAvg, PrintsTheGraphRoundByRound) {
  const json s = result("--print-schedule --topology exponential --workers 4 --peers 1 --rounds 3");
  ASSERT_EQ(s.size(), 3u);
  EXPECT_EQ(s[0][0], json::parse(R"({"out": [1], "in": [3], "self": 0.5, "weights": [0.5]})"));
  EXPECT_EQ(s[1][3], json::parse(R"({"out": [1], "in": [1], "self": 0.5, "weights": [0.5]})"));
  EXPECT_EQ(s[2], s[0]);
  EXPECT_EQ(result("--print-schedule --hosts alpha:2,beta:3 --rounds 1")[0].size(), 5u);
}

TEST_F(GossipAvg, TellsContractionMeasuredAndInTheoryAndTheMass) {
  const json r = result("--workers 4 --size 1000 --topology ring --peers 1 --rounds 12");
  const json& e = r["epochs"][0];
  EXPECT_EQ(e["gossips_compared"], 12);
  EXPECT_NEAR(e["contraction"]["theoretical"], std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(e["contraction"]["measured"], std::sqrt(0.5), 0.03);
  EXPECT_LE(double(e["contraction"]["measured"]), double(e["contraction"]["theoretical"]) + 1e-6);
  EXPECT_EQ(e["trace"].size(), 13u);
  EXPECT_NEAR(e["mass_end"]["w"], 4, 1e-9);
  EXPECT_NEAR(e["mass_end"]["x"], double(e["mass_begin"]["x"]), 1e-3);
  const auto words = gossip("--workers 4 --size 1000");
  for (const char* part : {"contraction per round", "the mean is exact after 2", "sum of w 4 -> 4, sum of X"})
    EXPECT_NE(words.out.find(part), std::string::npos) << words.out;
}

TEST_F(GossipAvg, DrawsTheErrorOverTheRounds) {
  ASSERT_EQ(gossip("--workers 4 --size 1000 --topology ring --tolerance 1e-5 --report page.html").status, 0);
  const std::string page = place_.read("page.html");
  for (const char* part : {"<svg", "data-line=\"measured\"", "data-line=\"theory\"", "data-line=\"largest\"",
                           "The mass law", "tolerance of the largest distance"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  for (const char* part : {"src=", "<link", "<script", "url(http", "nan", "inf\""})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  EXPECT_LT(page.size(), 100u << 10);
}

TEST_F(GossipAvg, TestsEveryLink) {
  for (const char* way : {"shared", "ucx", "local"}) {
    const json r = result(text("--workers 3 --link-test --repeats 3 --transport ", way));
    ASSERT_EQ(r["sizes"].size(), 4u);
    for (const json& size : r["sizes"])
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) {
          const double s = size["seconds"][size_t(a)][size_t(b)];
          EXPECT_EQ(s > 0, a != b) << way << size;
          EXPECT_LT(s, 100) << way << size;
        }
    EXPECT_GT(double(r["sizes"][3]["seconds"][0][2]), double(r["sizes"][0]["seconds"][0][2])) << way;
  }
  const auto words = gossip("--workers 2 --link-test --repeats 1 --transport local");
  EXPECT_NE(words.out.find("bandwidth, GB/s one way"), std::string::npos) << words.out;
  EXPECT_EQ(words.out.find("e+0"), std::string::npos) << words.out;
}

TEST_F(GossipAvg, RefusesInstructionsThatNoProcessorHas) {
  const auto ended = place_.run("SKEIN_CPU=sse $GOSSIP --workers 2 --size 5");
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.err.find("SKEIN_CPU=sse: is none of avx2"), std::string::npos) << ended.err;
}

TEST_F(GossipAvg, RefusesInOneLineWithoutLeavingAnythingBehind) {
  write_inputs(3);
  Vectors other{true, {{"", "<f4", {4, 4}, false}}, Tensor::zeros({16})};
  apps::write_vectors(path("in3.npy"), other);
  for (int r = 0; r < 2; ++r) std::filesystem::create_directories(place_.path() / text("empty", r));
  for (int r = 0; r < 2; ++r) write_array(text("wide", r, ".npy"), "<f8", {1}, {1});
  place_.write("text0.npy", "hello"), place_.write("text1.npy", "hello");
  const std::pair<const char*, const char*> cases[] = {
      {"--workers 4 --input in{rank}.npy", "in3.npy holds <f4 [4, 4]"},
      {"--workers 5 --input in{rank}.npy", "in4.npy: cannot"},
      {"--workers 2 --input text{rank}.npy", "text0.npy: is not a .npy file"},
      {"--workers 0 --size 5", "--workers 0: from 1 to 65536"},
      {"--size 5", "--workers is needed"},
      {"--workers 2", "--input FILE... or --size N"},
      {"--workers 2 --input wide{rank}.npy --wire bf16 --rounds 1", "wide0.npy holds float64"},
      {"--input in0.npy in3.npy wide0.npy --workers 2", "--input names 3 files for 2 workers"},
      {"--input in0.npy wide0.npy", "in0.npy holds <f4 [3, 4], but wide0.npy holds <f8 [1]"},
      {"--input nothing0 nothing1", "nothing0: no such file or directory"},
      {"--workers 2 --size 5 --toleranze 1", "unknown flag --toleranze; did you mean --tolerance?"},
      {"--workers 2 --size 5 extra", "unexpected argument 'extra'"},
      {"--workers 2 --input in0.npy", "{rank} must stand in the name"},
      {"--workers 2 --size 5 --topology exponetial", "did you mean exponential"},
      {"--workers 3 --size 5 --topology bipartite-linear", "even number of workers, not 3"},
      {"--workers 4 --size 5 --peers 4", "offers 3 with 4 workers"},
      {"--workers 4 --size 5 --algorithm pushsum", "did you mean push-sum"},
      {"--workers 4 --size 5 --algorithm pairwise --topology ring --rounds 1", "needs a graph of pairs"},
      {"--workers 4 --size 5 --transport udp", "udp"},
      {"--workers 3 --size 1000 --tolerance 1e-30", "out of reach"},
      {"--workers 2 --size 5 --output nowhere/x{rank}.npy", "nowhere/x0.npy"},
      {"--workers 2 --size 5 --ruonds 3", "--ruonds"},
      {"--workers 2 --size 5 --output x{rank}.txt", "must end in .npy or .safetensors"},
      {"--workers 2 --size 5 --report page.pdf", "must end in .html"},
      {"--workers 2 --size 5 --report nowhere/page.html", "nowhere/page.html"},
      {"--workers 2 --input empty{rank}", "without model.safetensors"},
      {"--workers 2 --link-test --size 5", "leave --size out"},
      {"--workers 1 --link-test", "at least 2 workers"},
      {"--workers 2 --size 5 --repeats 3", "--repeats is for --link-test"},
      {"--workers 2 --size 5 --deadline 0", "--deadline 0: must be above 0"},
  };
  for (const auto& [flags, message] : cases) {
    const auto ended = gossip(flags);
    EXPECT_NE(ended.status, 0) << flags;
    EXPECT_NE(ended.err.find(message), std::string::npos) << flags << '\n' << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << flags << '\n' << ended.err;
  }
}

}  // namespace
}  // namespace skein
