// Run: the state that every part of a training reads.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "apps/report/metrics.h"
#include "apps/report/progress.h"
#include "apps/setup/setup.h"
#include "apps/survival/survivors.h"
#include "apps/train/costs.h"

namespace skein::apps {

struct Run {
  Run(const Config&, Setup, std::string directory, Progress&, Survivors&);
  Run(const Run&) = delete;

  const Config config;
  const Setup setup;
  const std::string directory;
  Progress& progress;
  Survivors& survivors;
  const bool asynchronous;  // workers may be at different steps; they meet only to do something together
  const bool apart;         // so they are when the membership changes (ledger.h)
  std::function<bool()> stop = {};   // called between two steps: whether this worker should stop
  std::function<bool()> leave = {};  // whether it should leave the others, who go on
  int64_t k = 0;                     // steps taken, which only Trainer changes; the next is step k
  Costs costs;

  // Images that this worker has in a whole step.
  int64_t rows() const { return setup.portions->share_of(setup.place.rank); }
  bool first() const { return setup.place.rank == 0; }  // the worker that writes files and prints
  bool asked_to_stop() const { return stop && stop(); }
  bool asked_to_leave() const { return setup.place.council && leave && leave(); }
  comm::Communicator& comm() const { return survivors.comm(); }  // connects the workers that are left
  int64_t epochs() const { return k / setup.steps_per_epoch; }   // complete epochs
  double epochs_at(int64_t step) const { return double(step) / double(setup.steps_per_epoch); }
  double epochs_seen() const { return epochs_at(k); }
  std::optional<double> bytes_sent() const;  // by this worker's algorithm; none for a single worker
  Json environment() const;                  // versions, host, device, threads
};

}  // namespace skein::apps
