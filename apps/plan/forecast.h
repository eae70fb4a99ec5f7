// Forecast: what the simulator says of one algorithm in the world of a probe.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/plan/probed_world.h"

namespace skein::apps {

struct Candidate {
  std::string algorithm, flags;  // flags: "--tau 4 --wire bf16"
};
// Those of candidates.def, all other rows with their defaults, and what the command line asks for, if that is
// an algorithm for several workers.
std::vector<Candidate> candidates(const Config& asked);

struct Forecast {
  Candidate what;
  double images_per_second = 0;
  double waiting = 0;                   // share of the time for which the worker that waits most stands still
  std::optional<double> hidden = {};    // share of the time of transfers
  double bytes_per_step = 0;            // sent by a worker
  std::string limit = {};               // what more of it would be worth most
  std::optional<double> accuracy = {};  // points to allreduce, as bench/compare has measured them
};

// Best first; `refused` receives a line for each candidate that so many workers or these flags do not allow.
std::vector<Forecast> forecasts(const Config&, const Probed&, const std::vector<Candidate>&,
                                std::vector<std::string>& refused);

// Some of the workers, of one host, without messages.
struct Fewer {
  double images_per_second = 0;
  int workers = 0;
  std::string host = {};
};
Fewer by_one_worker(const Probed&);  // the fastest
Fewer by_one_host(const Probed&);    // all of the fastest

}  // namespace skein::apps
