// bench/compare runs: three rows, two ways to split, a table between the marks and nothing else touched.
#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace skein {
namespace {

using nlohmann::json;
using testing_programs::Ended;
using testing_programs::Workplace;

const std::string kCompare =
    "timeout 200 python3 " SKEIN_SOURCE_DIR "/bench/compare --build " SKEIN_BINARY_DIR
    " --runs runs --results table.md --data synthetic:8x8x1,classes=4,train=400,test=80 --model mlp --batch "
    "8 ";
const char* kPage = "# Mine\n<!-- compare: begin -->\nold\n<!-- compare: end -->\nand more\n";

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

TEST(Compare, WritesATableOfThreeRows) {
  const Workplace w;
  w.write("table.md", kPage);
  const std::string command = kCompare + "--only allreduce,sgp,local-sgd --splits iid,major:0.6 --steps 12";
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
  // What was run with the same settings is kept: nothing is trained, and the table says the same.
  w.run("rm -r runs/*-*");
  const Ended again = w.run(command + " --resume");
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, "");
  EXPECT_FALSE(w.has("runs/sgp-iid"));
  const auto table = [](const std::string& text) { return text.substr(text.find("| algorithm")); };
  EXPECT_EQ(table(w.read("table.md")), table(page));
}

TEST(Compare, SaysWhatIsWrong) {
  const Workplace w;
  w.write("table.md", "no marks\n");
  const Ended nowhere = w.run(kCompare + "--only sgp --steps 1");  // before anything is trained
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_NE(nowhere.err.find("<!-- compare: begin -->"), std::string::npos) << nowhere.err;
  EXPECT_FALSE(w.has("runs/sgp-iid"));
  w.write("table.md", kPage);
  const Ended unknown = w.run(kCompare + "--only sgpp --steps 1");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.err.find("sgpp: no such algorithm"), std::string::npos) << unknown.err;
  // A row that fails is named in the table and by the exit status.
  const Ended failed = w.run(kCompare + "--only sgp --splits major:2 --steps 1");
  EXPECT_EQ(failed.status, 1);
  EXPECT_NE(failed.out.find("between 0 and 1"), std::string::npos) << failed.out << failed.err;
  EXPECT_NE(w.read("table.md").find("sgp, major:2: train_imagenet: --split major:2"), std::string::npos);
}

}  // namespace
}  // namespace skein
