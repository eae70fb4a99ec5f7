// SharedModel: a model that its worker steps, and that partners average with theirs in between.
#pragma once
#include "optim/gossip/edge_copies.h"

namespace skein::optim {

// An exchange is (x + y) / 2 for both of a pair, also if x has changed since it was sent: then the change
// stays. So the sum of the pair's models is conserved. Not thread-safe, but for receive(), which touches only
// what belongs to the exchange under way.
//
// With a codec it is x + (copy of y - copy of x) / 2, of the copies that both ends keep of what was sent
// over this edge (edge_copies.h).
class SharedModel {
 public:
  // x and, if they are mixed, the buffers behind it, as the worker has them. The graph has all who may
  // exchange with it.
  SharedModel(Worker&, const Options&, const Graph&);

  const Tensor& x() const { return x_; }
  void show(Worker&);  // me.x <- x
  bool is_shown() const { return shown_; }
  void step(Worker&);              // x <- x - eta u: x as it is now, u at me.x; then me.x <- x
  void mean(comm::Communicator&);  // x <- mean x over the ranks; collective

  // An exchange, in this order. payload() is for the other side: x at its beginning, or codes.
  void begin_exchange(const comm::Communicator&, comm::Rank with);
  const Tensor& payload() const { return payload_; }
  void receive(const comm::Message&, const comm::Communicator&);
  void go_half_way(const comm::Communicator&);

  // Threads have streams of their own: waits for what the calling thread's has been given, so that the
  // others find it done.
  void finish() const;
  void visit(Archive&);

 private:
  Tensor all_, x_, b_;     // x, and under `--bn-policy mix` the buffers behind it
  Tensor buffers_before_;  // as they were last shown
  EdgeCopies copies_;
  // Of the exchange under way. sent_ is x at its beginning as the other side gets it; without a codec.
  Tensor sent_, received_, payload_;
  comm::Rank with_ = 0;
  bool shown_ = false;    // x is what me.x shows
  bool changed_ = false;  // x is not what was sent
};

}  // namespace skein::optim
