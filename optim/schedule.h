// Learning-rate schedules as pure functions of the step.
#pragma once
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein::optim {

// Rate at step k of `total` (k from 0). Over the first `warmup` steps the straight line from `warmup_from`,
// one step before step 0, to `rate` at step `warmup`; then
//   constant    rate
//   step        rate * gamma^(number of milestones <= k)
//   cosine      rate * (1 + cos(pi t)) / 2, t = (k - warmup) / (total - warmup)
//   poly        rate * (1 - t)^power
// Steps past `total` keep the last value (t = 1).
struct Schedule {
  enum Kind : uint8_t { kConstant, kStep, kCosine, kPoly } kind = kCosine;
  double rate = 0.1;
  int64_t total = 1, warmup = 0;
  double warmup_from = 0;           // where the warm-up's line starts, one step before step 0
  std::vector<int64_t> milestones;  // steps
  double gamma = 0.1, power = 2;
  double at(int64_t k) const;
};

// "constant", "cosine", "poly[:POWER]", "step[:E1,E2,...[:GAMMA]]" with E in epochs (default 30,60,80 of 90,
// scaled to `epochs`). BadOption otherwise.
Schedule parse_schedule(const std::string& text, double rate, int64_t steps_per_epoch, double epochs,
                        double warmup_epochs);

// rate (global_batch / reference_batch)^growth: the rate grows with the global batch, by Goyal et al. 2017
// with growth 1, by Malladi et al. 2022 for Adam with 1/2; `reference_batch` is what `rate` was tuned for.
double scale_rate(double rate, int64_t global_batch, int64_t reference_batch, double growth = 1);
// The same in words: "0.025 = 0.1 x 64/256", "0.001 = 0.002 x sqrt(64/256)".
std::string scaled_rate_in_words(double rate, int64_t global_batch, int64_t reference_batch, double growth);

}  // namespace skein::optim
