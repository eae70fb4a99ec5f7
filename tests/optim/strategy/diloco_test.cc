// DiLoCo and its streaming form: their traces to the digit, and pieces that are synchronized one by one.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;
TEST(DiLoCo, FollowsItsTrace) {
  for (const char* name : {"diloco --fragments 1", "streaming-diloco --fragments 1"}) {
    const std::string line = name, algorithm = line.substr(0, line.find(' '));
    expect_trace(algorithm, "--tau 2 " + line.substr(algorithm.size()),
                 {{2, {.5054}, "m", -.38}, {4, {1.09854542}, "m", -.625974}});
  }
  expect_trace("diloco", "--tau 2 --outer-nesterov off", {{2, {.266}, "m", -.38}});
}

// The momentum of the first rounds is 0, then half of what it is from the third one on.
TEST(DiLoCo, WithAWarmUpFollowsItsTrace) {
  const std::vector<Row> trace = {
      {2, {.266}, "m", -.38}, {4, {.6542669}, "m", -.50046}, {6, {1.27809448}, "m", -.70610329}};
  for (const char* flags : {"diloco --tau 2", "streaming-diloco --tau 2 --fragments 1"}) {
    const std::string line = flags, algorithm = line.substr(0, line.find(' '));
    expect_trace(algorithm, line.substr(algorithm.size()) + " --outer-warmup 2", trace);
  }
}
// Worked by hand: the mean of the models after step 2 acts after step 3.
TEST(StreamingDiLoCo, WithADelayFollowsItsTrace) {
  const std::string flags = "--tau 2 --fragments 1 --delay 1";
  expect_trace("streaming-diloco", flags,
               {{2, {.19, .38, .57}, "z", 0},
                {3, {.5054}, "z", .5054},
                {4, {.55486, .65486, .75486}},
                {5, {.9196418}, "m", -.49146}});
  expect_trace("streaming-diloco", flags + " --mix 0.25",
               {{3, {.25 * .271 + .75 * .5054, .25 * .542 + .75 * .5054, .25 * .813 + .75 * .5054}}});
}

TEST(EagerDiLoCo, FollowsItsTrace) {
  expect_trace("eager-diloco", "--tau 2",
               {{1, {.1, .2, .3}},
                {2, {.08423333, .16846667, .2527}},
                {3, {.17581, .35162, .52743}},
                {4, {.61844808, .73149616, .84454424}},
                {5, {.65660327, .85834654, 1.06008981}},
                {6, {1.28103204, 1.42094714, 1.56086224}}});
}

TEST(StreamingDiLoCo, SynchronizesOnePieceAtATime) {
  EXPECT_EQ(meetings("streaming-diloco", "--fragments 2", 9, {}, 0, 2), (Steps{4, 8}));
  EXPECT_EQ(meetings("streaming-diloco", "--fragments 2", 9, {}, 2, 4), (Steps{2, 6}));
  EXPECT_EQ(meetings("streaming-diloco", "--fragments 2 --delay 3", 9, {}, 0, 2), (Steps{7}));
  EXPECT_EQ(meetings("streaming-diloco", "--fragments 2 --delay 3", 9, {}, 2, 4), (Steps{5, 9}));
  EXPECT_EQ(meetings("streaming-diloco", "--fragments 9 --tau 2", 5, {}, 0, 1), (Steps{2, 4}));
  EXPECT_EQ(meetings("streaming-diloco", "--fragments 9 --tau 2", 5, {}, 3, 4), (Steps{1, 3, 5}));
  EXPECT_TRUE(meetings("streaming-diloco", "--mix 1", 9, {}, 0, 4).empty());
}

}  // namespace
}  // namespace skein
