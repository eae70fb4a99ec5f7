// Sums of seconds and bytes.
#include "apps/train/costs.h"

#include <algorithm>

#include "apps/base/clock.h"

namespace skein::apps {

void Seconds::visit(Archive& a) {
  a("data", data);
  a("forward", forward);
  a("backward", backward);
  a("update", update);
  a("peers", peers);
  a("evaluate", evaluate);
  a("checkpoint", checkpoint);
}

void Transfers::visit(Archive& a) {
  a("bytes", bytes);
  a("waited", waited);
  a("in_flight", in_flight);
}

void Costs::begin(comm::Communicator& comm) {
  comm.meter().turn(false);
  counted_ = comm.meter().traffic();
}

void Costs::count(comm::Communicator& comm) {
  const comm::Traffic all = comm.meter().traffic();
  transfers.bytes += double(all.bytes - counted_.bytes);
  transfers.waited += all.waited - counted_.waited;
  transfers.in_flight += all.in_flight - counted_.in_flight;
  counted_ = all;
}

void Costs::visit(Archive& a) {
  Under s(a, "seconds."), t(a, "transfers.");
  seconds.visit(s);
  transfers.visit(t);
}

StepCosts::StepCosts(Costs& costs, comm::Communicator& comm)
    : costs_(costs),
      comm_(comm),
      counting_(comm.meter()),
      from_(clock_seconds()),
      training_(costs.seconds.training()),
      waited_(costs.transfers.waited) {}

std::pair<double, double> StepCosts::end() {
  const double now = clock_seconds();
  costs_.count(comm_);
  const double rest = now - from_ - (costs_.seconds.training() - training_);
  const double peers = std::min(rest, costs_.transfers.waited - waited_);
  costs_.seconds.peers += peers;
  costs_.seconds.update += rest - peers;
  return {from_, now};
}

}  // namespace skein::apps
