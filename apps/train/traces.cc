// Uses two traces in turn, so that the latest steps are always in one or both of them.
#include "apps/train/traces.h"

#include <utility>

#include "apps/report/timeline.h"
#include "apps/report/trace_file.h"

namespace skein::apps {

namespace {
constexpr int64_t kStepsOfATrace = 32;  // if only the latest steps are needed
}

Traces::~Traces() { run_.comm().meter().record(nullptr); }

void Traces::open() {
  if (!run_.config.trace.empty()) begin_trace(run_.config.trace);
}

// In a complete trace all clocks start at a barrier, so that the timelines of different hosts fit.
void Traces::start() {
  if (!run_.config.trace.empty()) run_.comm().barrier();
  began_ = clock_seconds();
  renew();
}

void Traces::before_step() {
  if (run_.k >= renewed_at_) renew();
}

void Traces::renew() {
  earlier_ = std::exchange(latest_, std::make_unique<comm::Trace>());
  run_.comm().meter().record(latest_.get());
  renewed_at_ = run_.config.trace.empty() ? run_.k + kStepsOfATrace : INT64_MAX;
}

void Traces::add_step(std::pair<double, double> from_to) {
  latest_->add({comm::Track::kCompute, kFrame, from_to.first, from_to.second, run_.k});
}

void Traces::add(const char* name, double from, double to) {
  if (latest_) latest_->add({comm::Track::kCompute, name, from, to});
}

Json Traces::timeline() const {
  std::vector<comm::Span> spans;
  for (const comm::Trace* t : {earlier_.get(), latest_.get()}) {
    if (!t) continue;
    const std::vector<comm::Span> some = t->spans();
    spans.insert(spans.end(), some.begin(), some.end());
  }
  return apps::timeline(run_.comm(), run_.setup.place.rank, spans);
}

void Traces::write(comm::Communicator& comm) const {
  if (!run_.config.trace.empty()) end_trace(run_.config.trace, comm, run_.setup.place.rank, *latest_, began_);
}

}  // namespace skein::apps
