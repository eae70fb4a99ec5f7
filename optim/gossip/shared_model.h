// SharedModel: a model that its worker steps, and that partners average with theirs in between.
#pragma once
#include "comm/communicator/communicator.h"
#include "optim/strategy.h"

namespace skein::optim {

// An exchange is (x + y) / 2 for both of a pair, also if x has changed since it was sent: then the change
// stays. So the sum of the pair's models is conserved. Not thread-safe, but for receive(), which touches only
// what belongs to the exchange under way.
class SharedModel {
 public:
  // x and, if they are mixed, the buffers behind it, as the worker has them.
  SharedModel(const Worker&, bool mixes_buffers);

  const Tensor& x() const { return x_; }
  void show(Worker&);  // me.x <- x
  bool is_shown() const { return shown_; }
  void step(Worker&);              // x <- x - eta u: x as it is now, u at me.x; then me.x <- x
  void mean(comm::Communicator&);  // x <- mean x over the ranks; collective

  // An exchange, in this order. sent() is x at its beginning, as the other side gets it.
  void begin_exchange(const comm::Communicator&);
  const Tensor& sent() const { return sent_; }
  void receive(const comm::Message&, const comm::Communicator&);
  void go_half_way(const comm::Communicator&);

  // Threads have streams of their own: waits for what the calling thread's has been given, so that the
  // others find it done.
  void finish() const;
  void visit(Archive&);

 private:
  Tensor all_, x_, b_;     // x, and under `--bn-policy mix` the buffers behind it
  Tensor buffers_before_;  // as they were last shown
  Tensor sent_, mean_;     // of the exchange under way
  bool shown_ = false;     // x is what me.x shows
  bool changed_ = false;   // x is not what was sent
};

}  // namespace skein::optim
