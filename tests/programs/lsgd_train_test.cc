// train_imagenet --algorithm lsgd with processes: recorded, replayed, resumed; interrupted;
// with a dedicated server.
#include <nlohmann/json.hpp>

#include "engine/base.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using nlohmann::json;
using testing_programs::Ended;

class LsgdTraining : public ::testing::Test {
 protected:
  Ended train(const std::string& flags) {
    return place_.run(
        "timeout 100 $TRAIN --data synthetic:12x12x1,classes=4,train=640,test=64 --image-size 12 --lr 0.05 "
        "--reference-batch 0 --lr-schedule constant --warmup-epochs 0 --augment none --threads 1 --model mlp "
        "--algorithm lsgd --workers 4 --groups 2 --batch-size 8 --checkpoint-every 10steps " +
        flags);
  }
  json hashes(const std::string& run) {
    return json::parse(place_.read(run + "/summary.json"))["worker_hashes"];
  }
  testing_programs::Workplace place_;
};

TEST_F(LsgdTraining, ReplaysItselfAlsoOverAResume) {
  ASSERT_EQ(train("--steps 30 --record order --output whole").status, 0) << place_.read(".err");
  ASSERT_EQ(train("--steps 30 --replay order --output again --transport local").status, 0)
      << place_.read(".err");
  EXPECT_EQ(hashes("again"), hashes("whole"));
  ASSERT_EQ(train("--steps 20 --replay order --output part").status, 0) << place_.read(".err");
  ASSERT_EQ(place_.run("timeout 100 $TRAIN --resume part --steps 30").status, 0) << place_.read(".err");
  EXPECT_EQ(hashes("part"), hashes("whole"));
}

TEST_F(LsgdTraining, TrainsWithADedicatedServer) {
  ASSERT_EQ(train("--steps 30 --servers dedicated --record order --output whole").status, 0)
      << place_.read(".err");
  ASSERT_EQ(train("--steps 30 --servers dedicated --replay order --output again").status, 0)
      << place_.read(".err");
  EXPECT_EQ(hashes("again"), hashes("whole"));
}

TEST_F(LsgdTraining, EndsAtOneStepWhenInterruptedAndGoesOn) {
  const Ended e = train(
      "--epochs 100000 --output run > log & P=$!\n"
      "for i in $(seq 600); do grep -q '\"step\"' run/metrics.jsonl 2>/dev/null && break; sleep 0.1; done\n"
      "sleep 0.5; kill -INT $(pgrep -P $P); wait $P; echo status $?; ls run/checkpoints");
  EXPECT_NE(e.out.find("status 130\nstep-"), std::string::npos) << e.out << e.err << place_.read("log");
  const int64_t step = std::stoll("0" + e.out.substr(std::min(e.out.size(), e.out.find("step-") + 5)));
  const Ended on = place_.run(text("timeout 100 $TRAIN --resume run --epochs 0 --steps ", step + 20));
  EXPECT_EQ(on.status, 0) << on.err;
}

}  // namespace
}  // namespace skein
