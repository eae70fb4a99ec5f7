// bench/compare runs: three rows, two ways to split, and a table between the marks,
// with nothing else changed.
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/program.h"

namespace skein {
namespace {

using nlohmann::json;
using testing_programs::Ended;
using testing_programs::Workplace;

const std::string kProgram =
    "timeout 200 python3 " SKEIN_SOURCE_DIR "/bench/compare --build " SKEIN_BINARY_DIR
    " --runs runs --results table.md --model mlp ";
const std::string kCompare = kProgram + "--data synthetic:8x8x1,classes=4,train=400,test=80 --batch 8 ";
const char* kPage = "# Mine\n<!-- compare: begin -->\nold\n<!-- compare: end -->\nand more\n";

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

TEST(Compare, WritesATableOfThreeRows) {
  const Workplace w;
  w.write("table.md", kPage);
  const std::string command =
      kCompare + "--only allreduce,sgp,local-sgd --splits iid,major:0.6 --seeds 1 --steps 12";
  const Ended e = w.run(command);
  ASSERT_EQ(e.status, 0) << e.out << e.err;
  const std::string page = w.read("table.md");
  EXPECT_EQ(page.find("# Mine\n<!-- compare: begin -->\n"), 0u) << page;
  EXPECT_EQ(page.find("old"), std::string::npos);
  EXPECT_NE(page.find("<!-- compare: end -->\nand more\n"), std::string::npos);
  EXPECT_NE(page.find("mlp on synthetic:8x8x1"), std::string::npos) << page;
  for (const char* row : {"| allreduce | ", "| local-sgd | ", "| sgp | "})
    EXPECT_EQ(count(page, row), 1u) << page;
  const json results = json::parse(w.read("runs/results.json"));
  ASSERT_EQ(results.size(), 6u);
  for (const json& r : results) {
    EXPECT_EQ(r["figures"]["steps"], 12);
    EXPECT_GT(r["figures"]["bytes"].get<double>(), 0);
    EXPECT_GT(r["figures"]["seconds"].get<double>(), 0);
  }
  // Runs with the same settings are kept: nothing is trained again, and the table is the same.
  w.run("rm -r runs/*-*");
  const Ended again = w.run(command + " --resume");
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, "");
  EXPECT_FALSE(w.has("runs/sgp-iid-1"));
  const auto table = [](const std::string& text) { return text.substr(text.find("| algorithm")); };
  EXPECT_EQ(table(w.read("table.md")), table(page));
  // Times that are taken afterwards: of 5 steps a row, in the first split alone; accuracies stay.
  const Ended timed = w.run(command + " --table --clock 5");
  EXPECT_EQ(timed.status, 0) << timed.err;
  const json all = json::parse(w.read("runs/results.json"));
  ASSERT_EQ(all.size(), 9u);
  for (size_t i = 6; i < 9; ++i) EXPECT_EQ(all[i]["figures"]["steps"], 5) << all[i];
  EXPECT_NE(w.read("table.md").find("5 steps that were timed for themselves"), std::string::npos);
  for (size_t i = 0; i < 6; ++i) {
    std::ostringstream top1;
    top1 << "| " << std::fixed << std::setprecision(2) << results[i]["figures"]["top1"].get<double>();
    EXPECT_NE(w.read("table.md").find(top1.str()), std::string::npos) << top1.str();
  }
}

// A row that is an algorithm with other flags, and the spread over the seeds, in the table and
// in the picture.
TEST(Compare, SeveralSeedsGiveMeansAndAPicture) {
  const Workplace w;
  w.write("table.md", kPage);
  w.run("sed 's/^seeds = .*/seeds = [3, 4]/' " SKEIN_SOURCE_DIR
        "/bench/compare.toml > settings.toml; "
        "printf '[row.rounds-of-2]\nalgorithm = \"local-sgd\"\ntau = 2\n' >> settings.toml");
  const std::string command =
      kCompare + "--settings settings.toml --only allreduce,rounds-of-2 --splits iid --steps 12";
  const Ended e = w.run(command);
  ASSERT_EQ(e.status, 0) << e.out << e.err;
  const json results = json::parse(w.read("runs/results.json"));
  ASSERT_EQ(results.size(), 4u);
  std::map<std::string, std::vector<double>> top1;
  for (const json& r : results) top1[r["flags"]["algorithm"]].push_back(r["figures"]["top1"].get<double>());
  const std::string page = w.read("table.md");
  EXPECT_NE(page.find("seeds 3, 4"), std::string::npos) << page;
  for (const auto& [algorithm, of_seeds] : top1) {
    ASSERT_EQ(of_seeds.size(), 2u);
    const double mean = (of_seeds[0] + of_seeds[1]) / 2;
    const std::string row = algorithm == "local-sgd" ? "rounds-of-2" : algorithm;
    std::ostringstream cell;
    cell << "| " << row << " | " << std::fixed << std::setprecision(2) << mean << " ± ";
    EXPECT_NE(page.find(cell.str()), std::string::npos) << page;
  }
  const bool ahead =
      top1["allreduce"][0] + top1["allreduce"][1] >= top1["local-sgd"][0] + top1["local-sgd"][1];
  EXPECT_EQ(page.find("| allreduce") < page.find("| rounds-of-2"), ahead) << "best first";
  EXPECT_NE(page.find("(compare.svg)"), std::string::npos) << page;
  const std::string picture = w.read("compare.svg");
  EXPECT_EQ(picture.find("<svg "), 0u);
  EXPECT_EQ(count(picture, "<circle "), 4u);  // two rows, against bytes and against time
  EXPECT_EQ(count(picture, ">rounds-of-2</text>"), 2u);
}

// Checks the claim of the long table, on real images with the settings of compare.toml.
TEST(Compare, ThreeRowsLearnFashionMnistInOneEpochAndEndWithinTwoPoints) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const Workplace w;
  w.write("table.md", kPage);
  const Ended e =
      w.run(kProgram + "--only allreduce,sgp,local-sgd --splits iid --seeds 1 --batch 16 --epochs 1");
  ASSERT_EQ(e.status, 0) << e.out << e.err;
  const json results = json::parse(w.read("runs/results.json"));
  ASSERT_EQ(results.size(), 3u);
  const auto top1 = [](const json& r) { return r["figures"]["top1"].get<double>(); };
  EXPECT_EQ(results[0]["flags"]["algorithm"], "allreduce");
  for (const json& r : results) {
    EXPECT_EQ(r["flags"]["data"], "fashion-mnist");
    EXPECT_EQ(r["figures"]["steps"], (60000 + 63) / 64);
    EXPECT_GT(top1(r), 84) << r;
    EXPECT_GT(top1(r), top1(results[0]) - 2) << r;
  }
}

TEST(Compare, SaysWhatIsWrong) {
  const Workplace w;
  w.write("table.md", "no marks\n");
  const Ended nowhere = w.run(kCompare + "--only sgp --steps 1");  // before anything is trained
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_NE(nowhere.err.find("<!-- compare: begin -->"), std::string::npos) << nowhere.err;
  EXPECT_FALSE(w.has("runs/sgp-iid-1"));
  w.write("table.md", kPage);
  const Ended unknown = w.run(kCompare + "--only sgpp --steps 1");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.err.find("sgpp: no such algorithm"), std::string::npos) << unknown.err;
  // A row that fails is named in the table and by the exit status.
  const Ended failed = w.run(kCompare + "--only sgp --splits major:2 --seeds 1 --steps 1");
  EXPECT_EQ(failed.status, 1);
  EXPECT_NE(failed.out.find("between 0 and 1"), std::string::npos) << failed.out << failed.err;
  EXPECT_NE(w.read("table.md").find("sgp, major:2: train_imagenet: --split major:2"), std::string::npos);
}

}  // namespace
}  // namespace skein
