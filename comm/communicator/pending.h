// Pending: a collective under way.
#pragma once
#include <memory>
#include <utility>
#include <vector>

namespace skein::comm {

class Receiver;

// Copyable; a second wait() is harmless. Dropping it does not cancel the collective: the tensor stays in use
// until it is done. Belongs to its communicator's thread.
class Pending {
 public:
  Pending() = default;  // nothing is under way: done
  void wait();          // throws PeerLost, Timeout, Disagreement
  bool done();          // makes progress, never waits
  struct Op;            // op.h

 private:
  friend class Receiver;
  Pending(Receiver& r, std::shared_ptr<Op> op) : receiver_(&r), op_(std::move(op)) {}
  bool finished();
  Receiver* receiver_ = nullptr;
  std::shared_ptr<Op> op_;
};

// Several, waited for in the order they were begun.
class Pendings {
 public:
  void operator+=(Pending p) { all_.push_back(std::move(p)); }
  void wait() {
    for (Pending& p : all_) p.wait();
    all_.clear();
  }

 private:
  std::vector<Pending> all_;
};

}  // namespace skein::comm
