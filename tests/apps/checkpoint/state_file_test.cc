// A rank's file of a checkpoint: it keeps every bit, is read in place, and misfits are named.
#include "apps/checkpoint/state_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/checkpoints.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;
using testing::has;
using testing::message_of;

TEST(StateFile, RoundTripKeepsEveryBit) {
  const ScratchDir dir;
  for (double weight : {0.1, -0.0, 1e-310, double(INFINITY), double(NAN), 1.0 + 0x1p-52}) {
    State s = some_state(3), back;
    s.weight = weight;
    const std::string path = save(dir.path(), 3, s);
    EXPECT_EQ(path, dir / "checkpoints/step-00000003");
    const Manifest m = load_checkpoint(path, 0, identity(), back.walk());
    EXPECT_EQ(m.step, 3);
    if (std::isnan(weight)) back.weight = weight;  // all NaNs count as equal
    EXPECT_TRUE(s == back) << weight;
  }
  EXPECT_TRUE(hidden_files(dir.path()).empty());
}

TEST(StateFile, LoadingWritesInPlace) {
  const ScratchDir dir;
  const std::string path = saved(dir, 1);
  State back;
  const Tensor window = back.x.view({10}, 5);
  load_checkpoint(path, 0, identity(), back.walk());
  EXPECT_EQ(window.data<float>()[0], some_state(1).x.data<float>()[5]);
}

TEST(StateFile, FieldsThatDoNotMatchAreNamed) {
  const ScratchDir dir;
  const std::string path = saved(dir, 10);
  const auto refused = [&](const Walk& walk) {
    return message_of<BadFile>([&] { load_checkpoint(path, 0, identity(), walk); });
  };
  State s;
  int64_t more = 0;
  EXPECT_TRUE(has(refused([&](Archive& a) { s.visit(a), a("rule.t", more); }), "lacks the field 'rule.t'"));
  EXPECT_TRUE(has(refused([&](Archive& a) { a("x", s.x); }), "which this run does not read"));
  Tensor shorter({99});
  EXPECT_TRUE(has(refused([&](Archive& a) { a("x", shorter); }), "f32 [100] there and f32 [99]"));
  EXPECT_TRUE(has(refused([&](Archive& a) { a("strategy.weight", more); }), "not a number of the kind int"));
}

}  // namespace
}  // namespace skein::apps
