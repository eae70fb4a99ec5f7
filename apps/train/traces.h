// Traces: what this worker did when, for --trace FILE and for the report's timeline.
#pragma once
#include <memory>

#include "apps/base/clock.h"
#include "apps/report/metrics.h"
#include "apps/train/run.h"

namespace skein::apps {

// With --trace it covers the whole training, otherwise the latest steps; the report shows
// an excerpt of these.
class Traces {
 public:
  explicit Traces(Run& run) : run_(run) {}
  ~Traces();
  Traces(const Traces&) = delete;

  void open();         // worker 0 makes the file of --trace; throws BadFile
  void start();        // call it before the first step; collective with --trace
  void before_step();  // forgets what is too old
  void add_step(std::pair<double, double> from_to);
  void add(const char* name, double from, double to);
  // Adds its lifetime to `sum`, and to the trace as a span of this name.
  Timed timed(double& sum, const char* name) { return Timed(sum, latest_.get(), name); }

  Json timeline() const;  // after the last step, collective: on rank 0 the contents of timeline.json
  // Writes the file of --trace with the workers in `comm`, which call it collectively.
  void write(comm::Communicator& comm) const;

 private:
  void renew();
  Run& run_;
  std::unique_ptr<comm::Trace> latest_, earlier_;
  int64_t renewed_at_ = 0;  // the step at which another trace takes over
  double began_ = 0;
};

}  // namespace skein::apps
