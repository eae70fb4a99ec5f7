// Every worker gathers the numbers of all workers and adds them in the order of ranks.
#include "apps/train/over_workers.h"

#include <algorithm>
#include <cmath>

#include "comm/communicator/words.h"

namespace skein::apps {

namespace {

void widen(Spread& s, double v) {
  s.min = std::min(s.min.value_or(INFINITY), v);
  s.max = std::max(s.max.value_or(-INFINITY), v);
}

}  // namespace

std::vector<double> told(const Seen& mine) {
  return {mine.sums.loss, mine.sums.hits, mine.sums.images, mine.data_wait, mine.peer_wait, *mine.bytes};
}

SeenByAll over_workers(comm::Communicator& comm, const Seen& mine) {
  return mine.bytes ? over_workers(comm::gather_numbers(comm, told(mine))) : like_mine(mine, 1);
}

SeenByAll over_workers(const std::vector<std::vector<double>>& told_by_all) {
  SeenByAll all;
  Sums sums;
  const double share = 1.0 / double(told_by_all.size());
  all.bytes = 0;
  for (const auto& v : told_by_all) {
    widen(all.data_wait, v[3]), widen(all.peer_wait, v[4]);
    all.data_wait.mean += v[3] * share, all.peer_wait.mean += v[4] * share;
    *all.bytes += v[5] * share;
    const Sums other{v[0], v[1], v[2]};
    if (other.images == 0) continue;
    sums += other;
    widen(all.loss, other.mean_loss()), widen(all.top1, other.top1());
  }
  all.loss.mean = sums.mean_loss(), all.top1.mean = sums.top1();
  all.images = sums.images;
  return all;
}

SeenByAll like_mine(const Seen& mine, int workers) {
  return {mine.sums.mean_loss(), mine.sums.top1(), mine.sums.images * workers,
          mine.data_wait,        mine.peer_wait,   mine.bytes};
}

Transfers sum_over_workers(comm::Communicator& comm, const Transfers& mine) {
  Transfers sum;
  for (const auto& other : comm::gather_numbers(comm, {mine.bytes, mine.waited, mine.in_flight}))
    sum.bytes += other[0], sum.waited += other[1], sum.in_flight += other[2];
  return sum;
}

std::vector<double> told(const Scaling& mine) { return {mine.scale, mine.skipped}; }

Scaling over_workers(comm::Communicator& comm, const Scaling& mine) {
  return scaling_over_workers(comm::gather_numbers(comm, told(mine)));
}

Scaling scaling_over_workers(const std::vector<std::vector<double>>& told_by_all) {
  Scaling all{told_by_all[0][0], 0};
  for (const auto& v : told_by_all)
    all.scale = std::min(all.scale, v[0]), all.skipped += v[1] / double(told_by_all.size());
  return all;
}

}  // namespace skein::apps
