// Traces: what this worker did when, for --trace FILE and for the report's time line.
#pragma once
#include <memory>

#include "apps/base/clock.h"
#include "apps/report/metrics.h"
#include "apps/train/run.h"

namespace skein::apps {

// With --trace it is the whole training; otherwise the latest steps, of which the report shows an excerpt.
class Traces {
 public:
  explicit Traces(Run& run) : run_(run) {}
  ~Traces();
  Traces(const Traces&) = delete;

  void open();         // worker 0: makes the file of --trace; throws BadFile
  void start();        // before the first step; collective with --trace
  void before_step();  // forgets what is too old
  void add_step(std::pair<double, double> from_to);
  void add(const char* name, double from, double to);
  // Adds the time it lives to `sum`, and to the trace as a span of that name.
  Timed timed(double& sum, const char* name) { return Timed(sum, latest_.get(), name); }

  Json timeline() const;  // after the last step; on rank 0 the contents of timeline.json; collective
  // Writes the file of --trace, of the workers in `comm`, which calls it collectively.
  void write(comm::Communicator& comm) const;

 private:
  void renew();
  Run& run_;
  std::unique_ptr<comm::Trace> latest_, earlier_;
  int64_t renewed_at_ = 0;  // step at which another trace takes over
  double began_ = 0;
};

}  // namespace skein::apps
