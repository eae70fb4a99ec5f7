// Probe: what --plan measures before it simulates: the speed of the workers and of their messages.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "apps/config/config.h"
#include "apps/launch/job.h"
#include "apps/launch/world_file.h"
#include "apps/report/progress.h"
#include "comm/average/link_test.h"

namespace skein::apps {

// Seconds are means of steps that all workers computed at the same time and without messages.
struct ProbedWorker {
  std::string host, network,
      machine;  // its name; what workers share that have the same network, or the same cores
  double loading = 0, forward = 0, backward = 0, update = 0;
  // Standard deviation of the logarithm of a step's time; where workers share a machine, of steps that one of
  // them computes alone: as the system lets them take turns, those of all at once differ, and yet even out.
  double spread = 0;
  double byte = 0;     // of a pass over a vector, for each that it reads or writes
  double updated = 0;  // bytes that update reads or writes
  double crowded = 1;  // how many times as long a step takes as one that its machine computes alone
  double step() const { return loading + forward + backward + update; }
  double computing() const { return step() - std::min(update, updated * byte); }  // without such passes
};

// What the first workers of all hosts do at the same time, with so many bytes, and how long it takes.
struct ProbedExchange {
  int64_t bytes = 0;
  double seconds = 0;
  int64_t pieces = 1;  // that the bytes are cut into
};

struct Probed {
  std::vector<ProbedWorker> workers;     // by rank
  std::vector<comm::Rank> fronts;        // the first worker of each host
  std::vector<comm::LinkTimes> between;  // fronts, from few bytes to many; empty: there is one host
  std::vector<comm::LinkTimes> within;   // two workers of one host; empty: none has two
  // Of all of their vectors, whole and as a gradient is cut; slices of no bytes: it is not.
  ProbedExchange sum = {}, slices = {};
  ProbedExchange gossip = {};  // such a message to each of the two neighbors in a ring, or the one
  // Such messages in a step, and one of as many bytes in all to the next only, if there are three; by how
  // many seconds the step is then longer, on average.
  ProbedExchange burden = {}, one_way = {};
  GradientPlan ghost;  // of the model
  int64_t steps_per_epoch = 0, global_batch = 0;
  double seconds = 0;  // that it took
  int neighbors() const { return fronts.size() > 2 ? 2 : 1; }
};

// Opens data and model as a run with these flags does, and computes for seconds. Collective; whole on rank 0.
Probed probe(const Config&, const Member&, Progress&);

}  // namespace skein::apps
