// What the record of a run holds of all its workers: means and how far the workers are apart.
#pragma once
#include <optional>

#include "apps/report/metrics.h"
#include "apps/train/costs.h"
#include "apps/train/meters.h"

namespace skein::apps {

// What one worker has seen in some span of time.
struct Seen {
  Sums sums = {};
  double data_wait = 0, peer_wait = 0;  // shares of the time
  std::optional<double> bytes = {};     // sent since the training began; none where the worker is alone
};

// The same of all workers.
struct SeenByAll {
  Spread loss, top1;
  double images = 0;
  Spread data_wait, peer_wait;
  std::optional<double> bytes;  // a worker's, in the mean
};

// Collective. Means of loss and hits weigh by images, those of waits do not; the smallest and the largest
// loss are of workers that saw any images.
SeenByAll over_workers(comm::Communicator&, const Seen& mine);
// Without asking the others, who may be at other steps: as if all `workers` had seen the same.
SeenByAll like_mine(const Seen& mine, int workers);

Transfers sum_over_workers(comm::Communicator&, const Transfers& mine);  // collective
// The smallest scale, and the mean of the steps that were skipped. Collective.
Scaling over_workers(comm::Communicator&, const Scaling& mine);

}  // namespace skein::apps
