// bench/worlds runs cells in simulated worlds, keeps them, and writes a page between its marks.
#include <nlohmann/json.hpp>

#include "tests/support/program.h"

namespace skein {
namespace {

using nlohmann::json;
using testing_programs::Ended;
using testing_programs::Workplace;

const std::string kWorlds = "timeout 200 python3 " SKEIN_SOURCE_DIR "/bench/worlds --build " SKEIN_BINARY_DIR
                            " --runs runs --results worlds.json --page page.md --cost-page page.md ";
const char* kWorldsPage = "# Mine\n<!-- worlds: begin -->\nold\n<!-- worlds: end -->\nand more\n";

TEST(Worlds, KeepsItsCellsAndWritesThePageAnew) {
  const Workplace w;
  w.write("page.md", kWorldsPage);
  const std::string command = kWorlds + "--only sgp,gem,lsgd --workers 16 --links 1,10 --resume";
  const Ended e = w.run(command);
  ASSERT_EQ(e.status, 0) << e.out << e.err;
  const json cells = json::parse(w.read("worlds.json"));
  ASSERT_EQ(cells.size(), 6u);
  const auto images = [&](const char* cell) { return cells[cell]["figures"]["images"].get<double>(); };
  const double alone = 64 / 0.3;  // images/s of a worker that never waits
  for (const auto& [name, cell] : cells.items()) {
    EXPECT_GT(images(name.c_str()), 0) << name;
    EXPECT_LT(images(name.c_str()), 16 * alone) << name;
    EXPECT_EQ(cell["figures"]["steps"], 200) << name;
  }
  for (const char* row : {"sgp", "gem", "lsgd"})
    EXPECT_LT(images((row + std::string(" 16 1")).c_str()), images((row + std::string(" 16 10")).c_str()));
  // The link of the worker that has the center carries what all others send.
  EXPECT_LT(images("gem 16 10"), images("sgp 16 10"));
  const std::string page = w.read("page.md");
  EXPECT_EQ(page.find("# Mine\n<!-- worlds: begin -->\n"), 0u) << page;
  EXPECT_EQ(page.find("old"), std::string::npos);
  for (const char* row : {"| sgp | 102 MB |", "| gem | ", "| lsgd | "})
    EXPECT_NE(page.find(row), std::string::npos) << page;
  const Ended again = w.run(command);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, "");  // nothing was run
  EXPECT_EQ(w.read("page.md"), page);
  const Ended dry = w.run(kWorlds + "--only sgp,osgp --workers 16 --links 10 --resume --dry");
  EXPECT_EQ(dry.status, 0) << dry.err;
  EXPECT_EQ(dry.out.find("osgp 16 10: --model resnet50"), 0u) << dry.out;
  EXPECT_EQ(json::parse(w.read("worlds.json")).size(), 6u);
}

TEST(Worlds, RefusesARowThatItDoesNotKnow) {
  const Workplace w;
  w.write("page.md", kWorldsPage);
  const Ended e = w.run(kWorlds + "--only none");
  EXPECT_NE(e.status, 0);
  EXPECT_NE(e.err.find("--only none: no such row"), std::string::npos) << e.err;
  EXPECT_EQ(w.read("page.md"), kWorldsPage);
}

}  // namespace
}  // namespace skein
