// Overlap Local SGD.
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;
TEST(OverlapLocalSgd, FollowsItsTrace) {
  expect_trace("overlap-local-sgd", "--tau 2",
               {{1, {.1, .2, .3}},
                {2, {.076, .152, .228}, "z", 0},
                {3, {.1684, .3368, .5052}},
                {4, {.191824, .292448, .393072}, "z", .152},
                {5, {.2726416, .4632032, .6537648}},
                {6, {.377459776, .486061952, .594664128}, "z", .398848}});
}

}  // namespace
}  // namespace skein
