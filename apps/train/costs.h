// Costs: the time that a worker's training has taken, by kind of work, and what its algorithm has sent.
#pragma once
#include <vector>

#include "comm/communicator/communicator.h"
#include "engine/archive.h"

namespace skein::apps {

// Seconds by kind of work. On a GPU forward, backward and update are what the host needed to queue them.
struct Seconds {
  double data = 0, forward = 0, backward = 0, update = 0, peers = 0, evaluate = 0, checkpoint = 0;
  double training() const { return data + forward + backward + update + peers; }
  static constexpr const char* kNames[] = {"data",  "forward",  "backward",  "update",
                                           "peers", "evaluate", "checkpoint"};
  std::vector<double> each() const { return {data, forward, backward, update, peers, evaluate, checkpoint}; }
  void visit(Archive&);
};

// What this worker's own algorithm sent and waited for, between the beginning and the end of its steps.
struct Transfers {
  double bytes = 0, waited = 0, in_flight = 0;  // seconds as in comm::Traffic
  void visit(Archive&);
};

class Costs {
 public:
  Seconds seconds;
  Transfers transfers;

  // From here on only steps count as traffic. Once, before the first step.
  void begin(comm::Communicator&);
  // What has been sent since it was last called is counted.
  void count(comm::Communicator&);
  void visit(Archive&);

 private:
  comm::Traffic counted_;  // the part of the communicator's traffic that is in `transfers`
};

// Measures one step. What it took outside the gradient was waiting for peers, or the update.
class StepCosts {
 public:
  StepCosts(Costs&, comm::Communicator&);
  StepCosts(const StepCosts&) = delete;
  // After the step: adds it to the costs. Returns when the step began and when it ended.
  std::pair<double, double> end();

 private:
  Costs& costs_;
  comm::Communicator& comm_;
  const comm::Counted counting_;
  const double from_, training_, waited_;
};

}  // namespace skein::apps
