// Flights: one worker's part in a push-sum whose gossips travel while the workers compute.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "optim/gossip/calls.h"
#include "optim/gossip/gossip.h"
#include "optim/gossip/meeting.h"
#include "optim/gossip/push_sum.h"
#include "optim/order_log.h"

namespace skein::optim {

// What is on its way is missing from the sum that this worker holds. Gossips follow one after the other.
// Messages belong to a gossip by its number, the count of gossips that their sender had started before; those
// of later numbers wait. --record and --replay are of the order of gossips, forwards and meetings.
class Flights {
 public:
  // s = --staleness; --bn-policy, --wire and what Graph reads. Throws BadOption.
  Flights(const Options&, int world);
  void start(Worker&);  // X = x, w = 1

  // To be called before every forward. A gossip that is late by more than s forwards is waited for; when the
  // one in the air has landed, it is absorbed and the next one sets out. Throws PeerLost, Timeout.
  void gossip(Worker&);
  const Tensor& x() const { return sum_.x(); }  // X, which the worker's step may change
  void show(Worker& me) const { sum_.show(me); }
  void stepped(Worker&);  // to be called after every step; shows z unless some of it is in the air

  // Strategy::settle. A worker that has come goes on with its gossips, without forwards, as long as others
  // may wait for them. When all have come, all that was sent is here, and me.x is the model with it.
  void meet(Worker&);
  // The others after meet(): the mean of the models with what is here; and X with it, whose mean
  // is the model.
  void average(Worker&);
  Tensor contribution(Worker&);
  void visit(Archive&);

 private:
  static constexpr comm::Tag kShare = comm::kRounds | 1, kMeet = 3;  // and those of Calls
  // What is recorded: the number of a gossip when it starts, and
  enum Event : int64_t { kForward = -1, kMeeting = -2, kMet = -3 };
  using Place = std::pair<int64_t, comm::Rank>;  // number, sender

  const comm::Edge* missing(const Worker&);  // the first message of the gossip in the air that is not here
  void wait(const Worker&);
  void wait_a_moment(const Worker&, const comm::Edge&, double seconds);  // for that message, and no longer
  void land(const Worker&, const comm::Edge&, int64_t q, comm::Message);
  comm::Mix mix_at(const Worker& me, int64_t q) const { return copies_.bearable(graph_.at(me, q)); }
  void hurry(const Worker&);
  void turn(Worker&);
  void absorb(const Worker&);
  void launch(const Worker&);
  void replay(Worker&);
  void gather(Worker&, bool replays);
  std::vector<int64_t> tell_started(const Worker&);
  Tensor all_there_is(const Worker&, double& w);

  const Options options_;
  const int64_t s_;
  const Graph graph_;
  EdgeCopies copies_;
  Meeting meeting_{kMeet};
  Calls calls_;
  std::unique_ptr<OrderLog> log_;

  PushSum sum_;        // what this worker holds
  int64_t age_ = 0;    // forwards since the gossip in the air was started
  int64_t ahead_ = 0;  // steps whose gossips were started at a meeting
  bool met_ = true;    // and no step since: what was sent is here

  int64_t started_ = 0, aloft_ = 0;  // gossips started; 1 if the last of them is not absorbed
  std::map<Place, comm::Message> here_;
  struct {
    comm::Mix mix;
    int64_t number = -1;
  } in_air_;  // the gossip in the air
};

}  // namespace skein::optim
