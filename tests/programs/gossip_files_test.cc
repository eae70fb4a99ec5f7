// gossip_avg's input and output files: arrays of every type, tensors by name, the models of runs.
#include <cmath>

#include "engine/vectors/vec.h"
#include "tests/programs/gossip_program.h"

namespace skein {
namespace {

using GossipFiles = GossipAvg;

TEST_F(GossipFiles, AveragesArraysByEveryAlgorithmAndTransport) {
  write_inputs(4);
  for (const std::string flags :
       {"--algorithm push-sum", "--algorithm push-sum --topology ring --peers 2", "--algorithm pairwise",
        "--algorithm allreduce", "--topology base --base 2", "--transport local", "--transport shared",
        "--transport ucx", "--transport tcp", "--transport tcp --seal off"}) {
    const auto ended = place_.run(
        "SKEIN_UCX_TLS=tcp $GOSSIP --workers 4 --input in{rank}.npy --output out{rank}.npy --tolerance "
        "1e-4 " +
        flags);
    ASSERT_EQ(ended.status, 0) << flags << ended.err;
    expect_means(4, "out", 1e-4);
  }
}

TEST_F(GossipFiles, KeepsTheTypeOfAnArray) {
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
TEST_F(GossipFiles, RoundsAnArrayOfHalvesOnce) {
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

TEST_F(GossipFiles, AveragesDoublesInDouble) {
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

TEST_F(GossipFiles, NamesTheFileAndThePlaceOfANumberWithoutAMean) {
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

TEST_F(GossipFiles, TakesAFilePerWorkerAndNamesTheResults) {
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

TEST_F(GossipFiles, AveragesTensorsByName) {
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

TEST_F(GossipFiles, OneWorkerKeepsItsVector) {
  write_inputs(1);
  ASSERT_EQ(gossip("--workers 1 --input in{rank}.npy --output out{rank}.npy").status, 0);
  EXPECT_EQ(place_.read("in0.npy"), place_.read("out0.npy"));
}

TEST_F(GossipFiles, WritesWhereTheNumbersComeFrom) {
  write_inputs(2);
  ASSERT_EQ(gossip("--workers 2 --input in{rank}.npy --output out{rank}.npy").status, 0);
  const json j = json::parse(place_.read("out1.npy.json"));
  EXPECT_EQ(j["algorithm"], "push-sum");
  EXPECT_EQ(j["living"], json::parse("[0, 1]"));
  EXPECT_EQ(j["inputs"][1]["file"], "in1.npy");
  EXPECT_EQ(std::string(j["inputs"][0]["blake2b"]).size(), 64u);
  EXPECT_NE(j["inputs"][0]["blake2b"], j["inputs"][1]["blake2b"]);
}

TEST_F(GossipFiles, AveragesNothingIfTheResultHasNoPlace) {
  for (const std::string flags : {"--output missing/out{rank}.npy", "--report missing/a.html",
                                  "--report out.html", "--output mean{rank}.npy --report out.html"}) {
    place_.run("mkdir -p out.html");
    const auto e = gossip("--workers 2 --size 1000 --rounds 5 " + flags);
    EXPECT_EQ(e.status, 1) << flags;
    testing_programs::expect_has(e.err, flags.ends_with("missing/out{rank}.npy")
                                            ? "missing/out0.npy: this file cannot be made: No such file"
                                        : flags.ends_with("a.html")
                                            ? "missing/a.html: this file cannot be made"
                                            : "out.html: is a directory; name a file");
    EXPECT_EQ(e.out, "");
    EXPECT_FALSE(place_.has("mean0.npy"));
  }
}

// As on a full disk, the message names the file.
TEST_F(GossipFiles, AFileThatMayNotBeSoLongIsNamed) {
  const auto e = place_.run(
      "(ulimit -f 8; timeout 100 $GOSSIP --workers 1 --size 100000 --rounds 1 --output out{rank}.npy "
      "2>&1 | cat)");
  testing_programs::expect_has(e.out, "out0.npy.partial: cannot write: File too large");
}

// Two directories of trained runs: counters and metadata stay, the numbers are averaged.
TEST_F(GossipFiles, AveragesTheModelsOfRuns) {
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

}  // namespace
}  // namespace skein
