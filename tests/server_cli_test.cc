// train_imagenet with a center: inline and dedicated, alone, recorded, interrupted, and with a worker killed.
#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace skein {
namespace {

using nlohmann::json;
using testing_programs::Ended;

const char* kTask =
    "timeout 100 $TRAIN --data synthetic:12x12x1,classes=4,train=640,test=64 --image-size 12 --lr 0.02 "
    "--reference-batch 0 --lr-schedule constant --warmup-epochs 0 --augment none --log-every 5 --threads 1 "
    "--model mlp --batch-size 8 --momentum 0 --no-nesterov ";

class Served : public testing::Test {
 protected:
  Ended train(const std::string& flags, const std::string& after = "") {
    return place_.run(kTask + flags + after);
  }
  json summary(const std::string& run) { return json::parse(place_.read(run + "/summary.json")); }
  testing_programs::Workplace place_;
};

TEST_F(Served, IsDoneAgainBitForBitWhereverTheServerIs) {
  for (const std::string row : {"gem", "downpour --tau 2", "easgd-async --tau 3"}) {
    place_.run("rm -rf once again order.server");
    const std::string all = "--workers 3 --algorithm " + row + " --steps 12";
    ASSERT_EQ(train(all + " --record order --output once").status, 0) << place_.read(".err");
    ASSERT_EQ(train(all + " --replay order --servers dedicated --output again").status, 0)
        << place_.read(".err");
    EXPECT_EQ(summary("once")["worker_hashes"], summary("again")["worker_hashes"]) << row;
    EXPECT_EQ(summary("once")["hash"], summary("again")["hash"]) << row;
  }
}

TEST_F(Served, TrainsAloneAndAsThreads) {
  EXPECT_EQ(train("--algorithm gem --steps 6 --output a").status, 0) << place_.read(".err");
  EXPECT_EQ(train("--algorithm gem --servers dedicated --steps 6 --output b").status, 0)
      << place_.read(".err");
  EXPECT_EQ(summary("a")["hash"], summary("b")["hash"]);
  EXPECT_EQ(train("--algorithm agn --workers 8 --transport local --steps 6 --output c").status, 0)
      << place_.read(".err");
}

TEST_F(Served, CtrlCSavesWhereAllCanGoOn) {
  const Ended e =
      train("--workers 2 --algorithm downpour --servers dedicated --steps 1000000 --output run",
            " > said & p=$!; until [ -s run/metrics.jsonl ] || ! kill -0 $p; do sleep 0.1; done; sleep 1; "
            "pkill -INT -P $p; wait $p");
  EXPECT_EQ(e.status, 130) << e.err;
  const std::string said = place_.read("said");
  const size_t at = said.find("interrupted after step ");
  ASSERT_NE(at, std::string::npos) << said;
  const int step = std::stoi(said.substr(at + 23));
  EXPECT_EQ(place_.run("timeout 100 $TRAIN --resume run --steps " + std::to_string(step + 10)).status, 0)
      << place_.read(".err");
  EXPECT_EQ(summary("run")["steps"], step + 10);
}

TEST_F(Served, TheOthersTrainToTheEndWhenAWorkerIsKilled) {
  for (const std::string servers : {"inline", "dedicated"}) {
    const Ended e = train(
        "--workers 3 --algorithm gem --epochs 0 --steps 300 --servers " + servers + " --output " + servers,
        " > said & p=$!; until [ -s " + servers +
            "/metrics.jsonl ] || ! kill -0 $p; do sleep 0.05; done; "
            "for w in $(pgrep -P $(pgrep -P $p)); do "
            "grep -qz ^RANK=2 /proc/$w/environ && kill -9 $w; done; wait $p");
    EXPECT_EQ(e.status, 128 + 9) << e.err;
    EXPECT_NE(e.err.find("worker 2 was killed"), std::string::npos) << e.err;
    EXPECT_NE(place_.read("said").find("worker 2 is lost; 2 go on"), std::string::npos)
        << place_.read("said");
    EXPECT_EQ(summary(servers)["steps"], 300);
    EXPECT_EQ(summary(servers)["interrupted"], false);
    EXPECT_EQ(place_.run("timeout 100 $TRAIN --resume " + servers + " --steps 310").status, 0)
        << place_.read(".err");
  }
}

}  // namespace
}  // namespace skein
