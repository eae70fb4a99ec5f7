// A clock for measuring how long work takes.
#pragma once
#include "comm/trace.h"

namespace skein::apps {

// Seconds since a fixed moment in the past; never goes back. Real transports use this clock.
using comm::clock_seconds;

// Adds its lifetime to a sum and, if there is a trace, to the trace as a span of work.
class Timed {
 public:
  explicit Timed(double& sum, comm::Trace* trace = nullptr, const char* name = "")
      : sum_(sum), trace_(trace), name_(name), from_(clock_seconds()) {}
  ~Timed() {
    const double now = clock_seconds();
    sum_ += now - from_;
    if (trace_) trace_->add({comm::Track::kCompute, name_, from_, now});
  }
  Timed(const Timed&) = delete;

 private:
  double& sum_;
  comm::Trace* const trace_;
  const char* const name_;
  const double from_;
};

}  // namespace skein::apps
