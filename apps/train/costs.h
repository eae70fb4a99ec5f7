// Costs: the time that a worker's training has taken, by kind of work, and what its algorithm has sent.
#pragma once
#include <algorithm>
#include <deque>
#include <vector>

#include "apps/base/clock.h"
#include "comm/communicator/communicator.h"
#include "engine/archive.h"

namespace skein::apps {

// Seconds by kind of work. On a GPU, forward, backward and update are the time the host needed to queue them.
struct Seconds {
  double data = 0, forward = 0, backward = 0, update = 0, peers = 0, evaluate = 0, checkpoint = 0;
  double training() const { return data + forward + backward + update + peers; }
  static constexpr const char* kNames[] = {"data",  "forward",  "backward",  "update",
                                           "peers", "evaluate", "checkpoint"};
  std::vector<double> each() const { return {data, forward, backward, update, peers, evaluate, checkpoint}; }
  void visit(Archive&);
};

// What this worker's algorithm sent and waited for during its steps.
struct Transfers {
  double bytes = 0, waited = 0, in_flight = 0;  // seconds as in comm::Traffic
  void visit(Archive&);
};

// How many images a second this worker computes, without what it waits for others: that of the median of the
// latest steps, so that one which something has held up counts for nothing.
class Speed {
 public:
  // Unless `on` it costs nothing and knows nothing. On a GPU one step in five is measured, for which
  // the host waits.
  Speed(bool on, Device d) : on_(on), device_(d), every_(d.is_host() ? 1 : 5), steps_(d.is_host() ? 20 : 4) {}

  // A step, from when its batch is asked for until its gradient is there.
  class Lap {
   public:
    Lap(Speed& s, int64_t step) : speed_(s.on_ && step % s.every_ == 0 ? &s : nullptr) {
      if (!speed_) return;
      current_stream(speed_->device_).sync();
      from_ = clock_seconds();
    }
    void end(int64_t images) const {
      if (!speed_) return;
      current_stream(speed_->device_).sync();
      speed_->add(images, clock_seconds() - from_);
    }

   private:
    Speed* const speed_;
    double from_ = 0;
  };

  void add(int64_t images, double seconds) {
    if (images > 0) latest_.push_back(seconds / double(images));
    if (latest_.size() > steps_) latest_.pop_front();
  }
  double images_per_second() const {  // 0: not known yet
    if (latest_.size() < steps_) return 0;
    std::vector<double> each(latest_.begin(), latest_.end());
    const auto middle = each.begin() + int64_t(each.size() / 2);
    std::nth_element(each.begin(), middle, each.end());
    return 1 / std::max(*middle, 1e-12);
  }
  void clear() { latest_.clear(); }

 private:
  const bool on_;
  const Device device_;
  const int64_t every_;
  const size_t steps_;
  std::deque<double> latest_;  // seconds an image, of the latest steps
};

class Costs {
 public:
  Seconds seconds;
  Transfers transfers;

  // Call it once before the first step: from here on only steps count as traffic.
  void begin(comm::Communicator&);
  // Counts what has been sent since the last call.
  void count(comm::Communicator&);
  void visit(Archive&);

 private:
  comm::Traffic counted_;  // the part of the communicator's traffic that is in `transfers`
};

// Measures one step. Its time outside the gradient is either waiting for peers or the update.
class StepCosts {
 public:
  StepCosts(Costs&, comm::Communicator&);
  StepCosts(const StepCosts&) = delete;
  // Call it after the step: adds the step to the costs and returns when it began and when it ended.
  std::pair<double, double> end();

 private:
  Costs& costs_;
  comm::Communicator& comm_;
  const comm::Counted counting_;
  const double from_, training_, waited_;
};

}  // namespace skein::apps
