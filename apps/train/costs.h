// Costs: the time that a worker's training has taken, by kind of work, and what its algorithm has sent.
#pragma once
#include <vector>

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
