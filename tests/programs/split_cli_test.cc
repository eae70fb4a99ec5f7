// Training on shards of unequal labels: workers without samples do not hang, resumes are exact.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "optim/strategy.h"
#include "tests/support/files.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using nlohmann::json;
using testing::has;
using testing_programs::Ended;
using testing_programs::Workplace;

const std::string kSplitTask =
    "timeout 100 $TRAIN --data synthetic:8x8x1,classes=4,train=200,test=40 --model mlp --threads 1 "
    "--batch-size 8 "
    "--lr 0.05 --reference-batch 0 --augment none ";

TEST(SplitTraining, NobodyHangsWhateverTheAlgorithm) {
  const Workplace w;
  for (const optim::StrategyRow& row : optim::strategies()) {
    if (row.name == std::string("sgd")) continue;
    const std::map<std::string, std::string> flags = {
        {"lsgd", " --groups 2"}, {"post-local", " --switch-step 3"}, {"qsr", " --qsr-c 0.1"}};
    const std::string more = flags.contains(row.name) ? flags.at(row.name) : "";
    const Ended e = w.run("rm -rf out; " + kSplitTask +
                          "--split dirichlet:0.3 --workers 4 --transport local --epochs 2 " +
                          "--output out --algorithm " + row.name + more);
    ASSERT_EQ(e.status, 0) << row.name << e.err;
    const json s = json::parse(w.read("out/summary.json"));
    std::set<int64_t> sizes;
    int64_t all = 0, largest = 0;
    for (const json& worker : s["shards"]["labels"]) {
      int64_t size = 0;
      for (const json& n : worker) size += n.get<int64_t>();
      sizes.insert(size), all += size, largest = std::max(largest, size);
    }
    EXPECT_EQ(all, 200);
    EXPECT_GT(sizes.size(), 1u);  // otherwise nothing was tested
    EXPECT_EQ(s["shards"]["classes"].size(), 4u);
    EXPECT_EQ(s["steps"], 2 * ((largest + 7) / 8)) << row.name;
  }
}

TEST(SplitTraining, ResumedEqualsUninterrupted) {
  const Workplace w;
  for (const std::string algorithm : {"allreduce", "local-sgd", "sgp"}) {
    const std::string all = kSplitTask +
                            "--split dirichlet:0.3 --workers 3 --transport local --lr-schedule constant "
                            "--warmup-epochs 0 --algorithm " +
                            algorithm;
    w.run("rm -rf whole part");
    ASSERT_EQ(w.run(all + " --steps 21 --output whole").status, 0) << w.read(".err");
    ASSERT_EQ(w.run(all + " --steps 11 --output part").status, 0) << w.read(".err");
    ASSERT_EQ(w.run("timeout 100 $TRAIN --resume part --steps 21").status, 0) << w.read(".err");
    const json a = json::parse(w.read("whole/summary.json")), b = json::parse(w.read("part/summary.json"));
    EXPECT_EQ(a["hash"], b["hash"]) << algorithm;
    EXPECT_EQ(a["worker_hashes"], b["worker_hashes"]) << algorithm;
  }
  EXPECT_EQ(w.run("timeout 100 $TRAIN --resume part --steps 22 --split iid").status, 2);
}

TEST(SplitTraining, RefusesInOneLineBeforeTraining) {
  const Workplace w;
  for (const auto& [flag, message] : {std::pair{"dirichlet", "dirichlet:A"},
                                      {"major:2", "between 0 and 1"},
                                      {"dirichlet:0.0001", "gets none"}}) {
    const Ended e = w.run(kSplitTask + "--workers 6 --algorithm sgp --steps 2 --output out --split " + flag);
    EXPECT_EQ(e.status, 2) << e.err;
    EXPECT_NE(e.err.find(message), std::string::npos) << e.err;
    EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
    EXPECT_FALSE(w.has("out"));
  }
}

}  // namespace
}  // namespace skein
