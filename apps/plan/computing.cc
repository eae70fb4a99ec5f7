#include "apps/plan/computing.h"

#include <algorithm>

#include "engine/loops/moved_bytes.h"
#include "engine/vectors/vec.h"

namespace skein::apps {

double middle(std::vector<double> all) {
  std::nth_element(all.begin(), all.begin() + int64_t(all.size() / 2), all.end());
  return all[all.size() / 2];
}

Computing::Computing(const Config& c, const Member& me, Progress& progress)
    : survivors_(me.comm, false),
      run_(c, open_setup(c, me), "", progress, survivors_),
      traces_(run_),
      batches_(run_),
      learning_(run_, batches_, traces_),
      beside_(learning_.flat.x.clone()) {
  batches_.open();
}

// `finals`: where to put how much of backward was done when each slice was final, or null.
Seconds Computing::step(std::vector<double>* finals) {
  const Seconds before = run_.costs.seconds;
  Stream& stream = current_stream(run_.setup.device);
  optim::Slices slices;
  if (finals) {
    slices.ready = [&](const Tensor&) {
      stream.sync();
      finals->push_back(clock_seconds());
    };
    slices.complete = [] {};
  }
  const double from = clock_seconds();
  learning_.before_step();
  learning_.worker->gradient(slices);
  stream.sync();
  const double there = clock_seconds();
  MovedBytes moved;
  learning_.worker->local_step(learning_.worker->x);
  stream.sync();
  moved_by_update_ = moved.take();
  ++run_.k;
  Seconds s;
  s.data = run_.costs.seconds.data - before.data;
  s.forward = run_.costs.seconds.forward - before.forward;
  s.backward = there - from - s.data - s.forward;
  s.update = clock_seconds() - there;
  if (finals)
    for (double& at : *finals) at = std::clamp(1 - (there - at) / std::max(s.backward, 1e-9), 0.0, 1.0);
  return s;
}

// What strategies do: a vector that has not been read since the last step, and the parameters.
double Computing::pass() {
  const double from = clock_seconds();
  MovedBytes moved;
  lerp(beside_, learning_.flat.x, 0.5f);
  current_stream(run_.setup.device).sync();
  moved_by_pass_ = moved.take();
  return clock_seconds() - from;
}

std::vector<StepAndPass> Computing::steps(int count) {
  std::vector<StepAndPass> all;
  for (int i = 0; i < count; ++i) {
    all.push_back({step()});
    all.back().pass = pass();
  }
  return all;
}

std::vector<double> Computing::timeline(int count) {
  std::vector<std::vector<double>> by_slice;
  for (int i = 0; i < count; ++i) {
    std::vector<double> finals;
    step(&finals);
    by_slice.resize(finals.size());
    for (size_t k = 0; k < finals.size(); ++k) by_slice[k].push_back(finals[k]);
  }
  std::vector<double> all;
  for (std::vector<double>& one : by_slice) all.push_back(middle(std::move(one)));
  return all;
}

}  // namespace skein::apps
