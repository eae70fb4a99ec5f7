// The batch that is advised when memory runs out.
#include "apps/setup/memory_advice.h"

#include "tests/support/program.h"
#include "tests/support/says.h"

namespace skein::apps {
namespace {

using skein::testing_programs::Ended;
using skein::testing_programs::Workplace;

TEST(BatchThatFits, FollowsTheRoom) {
  EXPECT_EQ(batch_that_fits(64, 256, 100, 740, 2500), 224);  // 10 each: 225, rounded down to a multiple of 8
  EXPECT_EQ(batch_that_fits(64, 128, 100, 740, 9999), 127);  // never what has failed
  EXPECT_EQ(batch_that_fits(64, 128, 100, 740, 700), 64);    // that much did fit
  EXPECT_EQ(batch_that_fits(2, 8, 0, 20, 100), 9 - 2);
}

TEST(MemoryAdvice, ATrainingNamesABatchThatThenTrains) {
  const Workplace here;
  const std::string run =
      "$TRAIN --data synthetic:32x32x3,train=200,test=20 --model small-cnn --steps 1 --memory-limit 0.014 ";
  const Ended failed = here.run(run + "--batch-size 96 --output a");
  EXPECT_EQ(failed.status, 1) << failed.out << failed.err;
  EXPECT_SAYS(failed.err, "out of memory on cpu: a tensor ");
  EXPECT_SAYS(failed.err, " [96,");
  const auto number_after = [&](const std::string& flag) {
    const size_t at = failed.err.find(flag);
    return at == std::string::npos ? 0 : std::atoi(failed.err.c_str() + at + flag.size());
  };
  const int smaller = number_after("--batch-size "), passes = number_after("fits: --accumulate ");
  EXPECT_TRUE(smaller > 24 && smaller < 96 && passes == (96 + smaller - 1) / smaller) << failed.err;
  for (const std::string& way :
       {text("--batch-size ", smaller), text("--batch-size 96 --accumulate ", passes)}) {
    const Ended good = here.run(run + way + " --output b" + std::to_string(way.size()));
    EXPECT_EQ(good.status, 0) << way << '\n' << good.out << good.err;
  }
  EXPECT_SAYS(here.read(text("b", text("--batch-size ", smaller).size(), "/summary.json")),
              "\"numerics\": \"f32 is f32\"");
}

}  // namespace
}  // namespace skein::apps
