// Flights: one worker's push-sum gossips, one after the other, and the messages that have come but
// are not absorbed.
#pragma once
#include <functional>
#include <map>
#include <utility>

#include "optim/gossip/gossip.h"

namespace skein::optim {

// Messages belong to a gossip by its number, the count of gossips that their sender had started before;
// those of later numbers wait. X and w are the worker's numerator and weight: what is on its way is
// missing from them.
class Flights {
 public:
  Flights(const Options& o, int world) : graph_(o, world, "exponential", 1) {}

  int64_t started() const { return started_; }
  bool aloft() const { return aloft_ != 0; }               // the last one started is not absorbed
  bool landed(const Worker&);                              // all its messages are here; never waits
  void wait(const Worker&);                                // until they are; throws PeerLost, Timeout
  void absorb(const Worker&, const Tensor& x, double& w);  // X += M, w += w_M, in in-peer order; it is over
  void start(const Worker&, const Tensor& x, double& w);   // X, w <- X, w / (p+1); sends that share

  // Collective, between two steps. Returns when all workers have come, and all that was sent is here. Until
  // then it calls turn(), which is to absorb and to start the next, when nothing is aloft or it has landed:
  // always if `eager`, otherwise only if a worker waits for this worker's next gossip.
  void meet(const Worker&, bool eager, const std::function<void()>& turn);
  // After meet(): what is here and not absorbed.
  void add_to(const Worker&, const Tensor& x, double& w) const;
  // After meet(), called by all workers: forgets what is here and not absorbed, since the caller has
  // accounted for it. All start again with the same number.
  void forget(const Worker&);
  void visit(Archive&, const Tensor& like);

 private:
  static constexpr comm::Tag kShare = 1, kCome = 3, kWanted = 5;
  using Place = std::pair<int64_t, comm::Rank>;  // number, sender
  const comm::Edge* missing(const Worker&);      // the first message of the gossip aloft that is not here
  void hurry(const Worker&);
  std::vector<int64_t> tell_started(const Worker&);

  Graph graph_;
  Meeting meeting_{kCome};
  int64_t started_ = 0, aloft_ = 0;
  std::map<Place, comm::Message> here_;
  comm::Mix mix_;                            // of the gossip aloft
  int64_t mix_of_ = -1;                      // its number
  int64_t wanted_ = -1;                      // the highest number that another worker waits for
  std::map<comm::Rank, int64_t> asked_for_;  // by this worker
};

}  // namespace skein::optim
