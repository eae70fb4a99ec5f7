// Combines the numbers of all workers for the record of a run: means, and how far the workers are apart.
#pragma once
#include <optional>

#include "apps/report/metrics.h"
#include "apps/train/costs.h"
#include "apps/train/gradient/meters.h"

namespace skein::apps {

// What one worker has measured in some period.
struct Seen {
  Sums sums = {};
  double data_wait = 0, peer_wait = 0;  // shares of the time
  std::optional<double> bytes = {};     // sent since the training began; none for a single worker
};

// The same over all workers.
struct SeenByAll {
  Spread loss, top1;
  double images = 0;
  Spread data_wait, peer_wait;
  std::optional<double> bytes;  // mean over the workers
};

// Collective. Means of loss and hits are weighted by images, those of waits are not; the smallest and the
// largest loss are those of workers that saw any images.
SeenByAll over_workers(comm::Communicator&, const Seen& mine);
// The same in two parts, between which the numbers travel: what a worker tells, and what all have told.
std::vector<double> told(const Seen&);
SeenByAll over_workers(const std::vector<std::vector<double>>& told_by_all);
// Does not ask the others, which may be at other steps: assumes that all `workers` measured the same.
SeenByAll like_mine(const Seen& mine, int workers);

Transfers sum_over_workers(comm::Communicator&, const Transfers& mine);  // collective
// The smallest scale, and the mean number of skipped steps. Collective.
Scaling over_workers(comm::Communicator&, const Scaling& mine);
std::vector<double> told(const Scaling&);
Scaling scaling_over_workers(const std::vector<std::vector<double>>& told_by_all);

}  // namespace skein::apps
