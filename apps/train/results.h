// Results: what a run writes when it ends: summary, model, timeline, report.
#pragma once
#include "apps/train/outcome.h"
#include "apps/train/record.h"
#include "apps/train/scoring.h"
#include "comm/membership/end.h"

namespace skein::apps {

class Results {
 public:
  Results(Run&, Batches&, Traces&, Learning&, Record&, Scoring&);

  // Gathers the workers' results and writes the files, but no model if the run was interrupted. Collective;
  // it can be repeated. Throws BadFile on all workers.
  Outcome write(bool interrupted);
  // The outcome as far as this worker knows it, if other workers have completed the run.
  Outcome ended(const comm::End&) const;

 private:
  Outcome outcome(bool interrupted, const Transfers& of_all, double images_per_second) const;
  Summary summary(const Outcome&) const;

  Run& run_;
  Batches& batches_;
  Traces& traces_;
  Learning& learning_;
  Record& record_;
  Scoring& scoring_;
  std::optional<Outcome> latest_;  // what write() has returned
};

}  // namespace skein::apps
