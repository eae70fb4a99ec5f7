// Graphs that are read from files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "comm/topology/topology.h"
#include "tests/support/numbers/matrices.h"

namespace skein::comm {
namespace {

class GraphFileTest : public ::testing::Test {
 protected:
  std::string write(const std::string& json) {
    std::ofstream(path_) << json;
    return "file:" + path_;
  }
  ~GraphFileTest() override { std::remove(path_.c_str()); }
  std::string path_ = text(::testing::TempDir(), "graph", getpid(), ".json");
};

TEST_F(GraphFileTest, ReadsColumnsThatSumToOne) {
  const auto t = make_topology(
      write(R"({"n": 3, "rounds": [{"edges": [[0,0,0.25],[0,1,0.75],[1,1,1],[2,2,0.5],[2,0,0.5]]}]})"), {},
      3);
  EXPECT_EQ(t->at(0, 4).self, 0.25);
  EXPECT_EQ(t->at(0, 4).out, (std::vector<Edge>{{1, 0.75}}));
  EXPECT_EQ(t->at(0, 4).in, (std::vector<Edge>{{2, 0.5}}));
  EXPECT_FALSE(t->symmetric());
}

TEST_F(GraphFileTest, RefusesWhatIsNoGraph) {
  EXPECT_NE(refusal("file:/nowhere.json", {}, 3).find("/nowhere.json: cannot open this file"),
            std::string::npos);
  EXPECT_NE(refusal(write("{"), {}, 3).find("parse error"), std::string::npos);
  EXPECT_NE(refusal(write(R"({"n": 2, "rounds": []})"), {}, 3).find("2 workers, not of 3"),
            std::string::npos);
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_NE(
      refusal(write(R"({"n": )" + deep + R"(, "rounds": []})"), {}, 3).find("nested deeper than 64 levels"),
      std::string::npos);
  EXPECT_NE(
      refusal(write(R"({"n": 2, "rounds": [{"edges": [[0,0,0.5],[1,1,1]]}]})"), {}, 2).find("gives 0.5"),
      std::string::npos);
  EXPECT_NE(
      refusal(write(R"({"n": 2, "rounds": [{"edges": [[0,1,1],[1,1,1]]}]})"), {}, 2).find("is given nothing"),
      std::string::npos);
  EXPECT_NE(
      refusal(write(R"({"n": 2, "rounds": [{"edges": [[0,2,1],[1,1,1]]}]})"), {}, 2).find("no edge 0 to 2"),
      std::string::npos);
}

}  // namespace
}  // namespace skein::comm
