// gossip_avg as its users run it: input and output files, printed graphs, and refusals.
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/model/safetensors.h"
#include "apps/model/vectors.h"
#include "comm/communicator/numbers.h"
#include "engine/vectors/vec.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using apps::Vectors;
using nlohmann::json;

class GossipAvg : public ::testing::Test {
 protected:
  testing_programs::Ended gossip(const std::string& flags) {
    return place_.run("timeout 100 $GOSSIP " + flags);
  }
  json result(const std::string& flags) {
    const auto ended = gossip(flags + " --json");
    EXPECT_EQ(ended.status, 0) << ended.err;
    return json::parse(ended.out.empty() ? "{}" : ended.out);
  }
  std::string path(const std::string& name) { return (place_.path() / name).string(); }
  void write_array(const std::string& name, const std::string& type, const std::vector<int64_t>& shape,
                   const std::vector<double>& numbers) {
    Vectors v{true, {{"", type, shape, false}}, comm::bits_of(numbers)};
    if (type != "<f8")
      v.flat = Tensor::of<float>({int64_t(numbers.size())}, {numbers.begin(), numbers.end()});
    apps::write_vectors(path(name), v);
  }
  std::vector<double> read_array(const std::string& name) {
    const Vectors v = apps::read_vectors(path(name));
    return comm::visit_numbers(v.flat,
                               [&](const auto* x) { return std::vector<double>(x, x + v.flat.size()); });
  }
  // in0.npy ... of shape [rows, 4], rank r holds (r + 1) * (0, 1, 2, ...)
  void write_inputs(int n, int64_t rows = 3, const std::string& type = "<f4") {
    for (int r = 0; r < n; ++r) {
      std::vector<double> numbers;
      for (int64_t i = 0; i < rows * 4; ++i) numbers.push_back(double((r + 1) * i));
      write_array(text("in", r, ".npy"), type, {rows, 4}, numbers);
    }
  }
  void expect_means(int n, const std::string& name, double tolerance) {
    for (int r = 0; r < n; ++r) {
      const std::string file = text(name, r, ".npy");
      ASSERT_EQ(apps::read_vectors(path(file)).items[0].shape, (std::vector<int64_t>{3, 4}));
      const std::vector<double> numbers = read_array(file);
      for (size_t i = 0; i < numbers.size(); ++i)
        EXPECT_NEAR(numbers[i], double(i) * (n + 1) / 2, tolerance) << r;
    }
  }
  testing_programs::Workplace place_;
};

TEST_F(GossipAvg, NamesDoNotControlTheTerminal) {
  const auto ended = gossip("--workers 1 --input $'\\x1b[2Jowned.npy'");
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("\\x1b[2Jowned.npy: cannot open this file"), std::string::npos) << ended.err;
}

TEST_F(GossipAvg, AveragesArraysByEveryAlgorithmAndTransport) {
  write_inputs(4);
  for (const std::string flags :
       {"--algorithm push-sum", "--algorithm push-sum --topology ring --peers 2", "--algorithm pairwise",
        "--algorithm allreduce", "--topology base --base 2", "--transport local", "--transport shared",
        "--transport ucx", "--transport tcp", "--transport tcp --seal off"}) {
    const auto ended =
        gossip("--workers 4 --input in{rank}.npy --output out{rank}.npy --tolerance 1e-4 " + flags);
    ASSERT_EQ(ended.status, 0) << flags << ended.err;
    expect_means(4, "out", 1e-4);
  }
}

TEST_F(GossipAvg, KeepsTheTypeOfAnArray) {
  for (const char* type : {"<f8", "<f2"}) {  // the means are numbers of f16, too
    write_inputs(2, 3, type);
    ASSERT_EQ(gossip("--workers 2 --input in{rank}.npy --output out{rank}.npy").status, 0);
    expect_means(2, "out", 1e-4);
    EXPECT_EQ(apps::read_vectors(path("out0.npy")).items[0].type, type);
    EXPECT_EQ(place_.read("out0.npy").size(), place_.read("in0.npy").size());
  }
}

// Averaged in f32: no sum overflows, nothing is lost below f16's normal numbers, and each
// mean is rounded once.
TEST_F(GossipAvg, RoundsAnArrayOfHalvesOnce) {
  const float odd = 1 + 0x1p-10f, tiny = 0x1p-24f;  // the number of f16 after 1; its smallest
  const std::vector<std::vector<float>> in = {{65504, 1, odd, 3 * tiny}, {65504, odd, 1 + 0x1p-9f, tiny}};
  const std::vector<float> mean = {65504, 1, 1 + 0x1p-9f, 2 * tiny};  // the middle two lie half-way: to even
  for (int r = 0; r < 2; ++r)
    apps::write_vectors(path(text("in", r, ".npy")),
                        {true, {{"", "<f2", {4}, false}}, Tensor::of<float>({4}, in[size_t(r)])});
  ASSERT_EQ(gossip("--workers 2 --rounds 1 --input in{rank}.npy --output out{rank}.npy").status, 0);
  for (int r = 0; r < 2; ++r) {
    const Vectors v = apps::read_vectors(path(text("out", r, ".npy")));
    for (size_t i = 0; i < mean.size(); ++i) EXPECT_EQ(v.flat.data<float>()[i], mean[i]) << r << ' ' << i;
  }
}

TEST_F(GossipAvg, AveragesDoublesInDouble) {
  const std::vector<std::vector<double>> in = {
      {1 + 1e-9, 1e300, 2, 1e-300, -1}, {1, 2e300, 4, 2e-300, 1}, {1, 3e300, 6, 3e-300, 1}};
  const std::vector<double> of_two = {1 + 5e-10, 1.5e300, 3, 1.5e-300, 0},
                            of_three = {1 + 1e-9 / 3, 2e300, 4, 2e-300, 1. / 3};
  for (int r = 0; r < 3; ++r) write_array(text("in", r, ".npy"), "<f8", {5}, in[size_t(r)]);
  for (const std::string flags : {"", "--algorithm pairwise", "--algorithm allreduce", "--transport local"})
    for (int n : {2, 3}) {
      const auto ended =
          gossip(text("--workers ", n, " --input in{rank}.npy --output out{rank}.npy ", flags));
      ASSERT_EQ(ended.status, 0) << flags << ended.err;
      EXPECT_NE(ended.out.find("5 numbers of float64"), std::string::npos) << ended.out;
      // Two workers have the mean after one exchange; three only approach it over most graphs.
      const double share = n == 2 || flags == "--algorithm allreduce" ? 4e-16 : 1e-12;
      const std::vector<double>& mean = n == 2 ? of_two : of_three;
      for (int r = 0; r < n; ++r) {
        const std::vector<double> out = read_array(text("out", r, ".npy"));
        for (size_t i = 0; i < mean.size(); ++i)
          EXPECT_NEAR(out[i], mean[i], share * std::max(std::abs(in[0][i]), std::abs(mean[i])))
              << flags << ' ' << n << ' ' << r << ' ' << i;
      }
    }
}

TEST_F(GossipAvg, NamesTheFileAndThePlaceOfANumberWithoutAMean) {
  const double nan = std::nan(""), infinity = INFINITY;
  write_array("in0.npy", "<f4", {2, 3}, {1, 2, 3, 4, 5, 6});
  write_array("in1.npy", "<f4", {2, 3}, {1, 2, 3, 4, 5, nan});
  write_array("inf0.npy", "<f8", {2}, {1, 2}), write_array("inf1.npy", "<f8", {2}, {infinity, 2});
  write_array("big0.npy", "<f4", {2}, {1, 2e38}), write_array("big1.npy", "<f4", {2}, {1, 2});
  apps::TensorFile f;
  f.tensors = {{"a", Tensor::zeros({2})}, {"b", Tensor::of<float>({2, 1}, {0, std::nanf("")})}};
  for (const char* name : {"t0.safetensors", "t1.safetensors"}) apps::write_safetensors(path(name), f);
  const std::pair<const char*, const char*> cases[] = {
      {"in{rank}.npy", "in1.npy: [1, 2] is nan; only finite numbers have a mean"},
      {"inf{rank}.npy", "inf1.npy: [0] is inf;"},
      {"big{rank}.npy", "big0.npy: [1] is 2e+38, too large for the sum of 2 such numbers in float32"},
      {"t{rank}.safetensors", "t0.safetensors: tensor 'b' [1, 0] is nan"}};
  for (const auto& [files, message] : cases) {
    const auto ended = gossip(text("--workers 2 --output out{rank}.npy --input ", files));
    EXPECT_EQ(ended.status, 1) << files;
    EXPECT_NE(ended.err.find(message), std::string::npos) << ended.err;
    EXPECT_FALSE(place_.has("out0.npy")) << files;
  }
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

TEST_F(GossipAvg, TakesAFilePerWorkerAndNamesTheResults) {
  write_array("a.npy", "<f4", {1}, {1}), write_array("b.npy", "<f4", {1}, {3});
  const auto ended = gossip("--input a.npy b.npy --rounds 1 --output x{rank}.npy");
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(read_array("x1.npy"), std::vector<double>{2});
  EXPECT_NE(ended.out.find("1 number averaged between 2 workers by push-sum over exponential in 1 round,"),
            std::string::npos)
      << ended.out;
  EXPECT_NE(ended.out.find("\nresult: x0.npy, x1.npy\n"), std::string::npos) << ended.out;
  const json j = json::parse(place_.read("x0.npy.json"));
  EXPECT_EQ(j["inputs"][1]["file"], "b.npy");
  const auto many = gossip("--workers 6 --size 1 --rounds 1 --output y{rank}.npy");
  EXPECT_NE(many.out.find("result: y0.npy, y1.npy, y2.npy ... y5.npy\n"), std::string::npos) << many.out;
}

TEST_F(GossipAvg, ItsHelpNamesDefaultsAndExamples) {
  const auto ended = gossip("--help");
  EXPECT_EQ(ended.status, 0);
  for (const char* part :
       {"allreduce [push-sum]", "may take [60]", "ucx [auto]", "[1e-5 of each number's size",
        "Examples:\n  gossip_avg --workers 4 --input part{rank}.npy"})
    EXPECT_NE(ended.out.find(part), std::string::npos) << part << '\n' << ended.out;
}

TEST_F(GossipAvg, AveragesTensorsByName) {
  for (int r = 0; r < 3; ++r) {
    apps::TensorFile f;
    const Tensor a({2, 2}), b({3}, kBF16);
    fill(a, float(r)), fill(b, float(10 * r));
    if (r == 1)
      f.tensors = {{"b", b}, {"a", a}};  // another order in the file
    else
      f.tensors = {{"a", a}, {"b", b}};
    apps::write_safetensors(path(text("in", r, ".safetensors")), f);
  }
  ASSERT_EQ(gossip("--workers 3 --input in{rank}.safetensors --output out{rank}.safetensors --tolerance 1e-6")
                .status,
            0);
  const apps::TensorFile out = apps::read_safetensors(path("out2.safetensors"));
  EXPECT_NEAR(out.find("a")->data<float>()[3], 1, 1e-6);
  EXPECT_EQ(float(out.find("b")->data<bf16>()[2]), 10);
}

TEST_F(GossipAvg, ExponentialOfFourIsExactAfterTwoRounds) {
  const json r = result("--workers 4 --size 1000 --rounds 2 --topology exponential --peers 1");
  EXPECT_EQ(r["rounds"], 2);
  EXPECT_LT(double(r["error"]), 1e-6);
  EXPECT_EQ(r["weights"], json::parse("[1.0, 1.0, 1.0, 1.0]"));
  EXPECT_GT(double(result("--workers 4 --size 1000 --rounds 1")["error"]), 0.01);
}

TEST_F(GossipAvg, OneWorkerKeepsItsVector) {
  write_inputs(1);
  ASSERT_EQ(gossip("--workers 1 --input in{rank}.npy --output out{rank}.npy").status, 0);
  EXPECT_EQ(place_.read("in0.npy"), place_.read("out0.npy"));
}

TEST_F(GossipAvg, PrintsTheGraphRoundByRound) {
  const json s = result("--print-schedule --topology exponential --workers 4 --peers 1 --rounds 3");
  ASSERT_EQ(s.size(), 3u);
  EXPECT_EQ(s[0][0], json::parse(R"({"out": [1], "in": [3], "self": 0.5, "weights": [0.5]})"));
  EXPECT_EQ(s[1][3], json::parse(R"({"out": [1], "in": [1], "self": 0.5, "weights": [0.5]})"));
  EXPECT_EQ(s[2], s[0]);
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

TEST_F(GossipAvg, WritesWhereTheNumbersComeFrom) {
  write_inputs(2);
  ASSERT_EQ(gossip("--workers 2 --input in{rank}.npy --output out{rank}.npy").status, 0);
  const json j = json::parse(place_.read("out1.npy.json"));
  EXPECT_EQ(j["algorithm"], "push-sum");
  EXPECT_EQ(j["living"], json::parse("[0, 1]"));
  EXPECT_EQ(j["inputs"][1]["file"], "in1.npy");
  EXPECT_EQ(std::string(j["inputs"][0]["blake2b"]).size(), 64u);
  EXPECT_NE(j["inputs"][0]["blake2b"], j["inputs"][1]["blake2b"]);
}

// Two directories of trained runs: counters and metadata stay, the numbers are averaged.
TEST_F(GossipAvg, AveragesTheModelsOfRuns) {
  for (int r = 0; r < 2; ++r) {
    apps::TensorFile f;
    f.metadata = {{"model", "mlp"}, {"classes", "[\"a\"]"}};
    const Tensor w({3});
    fill(w, float(r));
    f.tensors = {{"n.num_batches_tracked", Tensor::of<int64_t>({}, {7 + r})}, {"w", w}};
    std::filesystem::create_directories(place_.path() / text("run", r));
    apps::write_safetensors(path(text("run", r, "/model.safetensors")), f);
  }
  ASSERT_EQ(gossip("--workers 2 --input run{rank} --output soup{rank}.safetensors").status, 0)
      << place_.read(".err");
  const apps::TensorFile soup = apps::read_safetensors(path("soup1.safetensors"));
  EXPECT_EQ(soup.find("w")->data<float>()[2], 0.5f);
  EXPECT_EQ(soup.find("n.num_batches_tracked")->data<int64_t>()[0], 8);
  EXPECT_EQ(soup.metadata.at("model"), "mlp");
  EXPECT_EQ(json::parse(soup.metadata.at("gossip_avg"))["inputs"][0]["file"], "run0/model.safetensors");
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
