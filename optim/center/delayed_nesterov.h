// Momentum at a center (--server-rule delayed-nesterov) that only every N-th commit changes, since commits
// that are late are alike.  Async Local-SGD: Liu et al., 2024; with c as HALoS: Kim et al., ICML 2025, as its
// program computes.
#pragma once
#include <optional>

#include "optim/center/center.h"
#include "optim/options.h"

namespace skein::optim {

//   m, beta  momentum, its decay      N  commits that make one step of m
//   a        rate                     c  what each applies of beta m
class DelayedNesterov {
 public:
  static constexpr int64_t kKept = 2;  // the vectors that the center keeps for it
  DelayedNesterov(const Options&, int world);
  void commit(const Turn&, const Tensor& delta) const;

 private:
  int64_t n_;
  double a_, beta_, c_;
};

// What --server-rule asks for; nothing for `sum`, with which the center adds what is committed.
std::optional<DelayedNesterov> delayed_nesterov(const Options&, int world);

}  // namespace skein::optim
