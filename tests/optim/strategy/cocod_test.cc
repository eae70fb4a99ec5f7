// CoCoD-SGD.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;
TEST(CocodSgd, FollowsItsTrace) {
  expect_trace("cocod", "--tau 2",
               {{1, {.1, .2, .3}},
                {2, {.19, .38, .57}},
                {3, {.271, .542, .813}},
                {4, {.5339, .6878, .8417}},
                {5, {.58051, .81902, 1.05753}},
                {6, {.776359, .937118, 1.097877}}});
}

}  // namespace
}  // namespace skein
