// What the tests of batch norm and of its fusions with convolutions share.
#pragma once
#include "tests/support/testing.h"

namespace skein::testing {

inline NormState fresh(int64_t channels) {
  return {random_uniform({channels}, 11, 0.5f, 1.5f), random_uniform({channels}, 12),
          random_uniform({channels}, 13, -0.5f, 0.5f), random_uniform({channels}, 14, 0.5f, 2)};
}
inline NormState with(const NormState& s, const Tensor& gamma, const Tensor& shift) {
  return {gamma, shift, s.running_mean.clone(), s.running_var.clone()};
}
// Small steps, because the ReLUs inside have kinks at unknown points.
inline constexpr GradCheck kFine{.step = 3e-4f, .tolerance = 2e-2};

}  // namespace skein::testing
