// Unrounded: f32 numbers travel as they are for a while.
#pragma once
#include "comm/communicator/communicator.h"

namespace skein::comm {

// While it lives, what this rank sends by this communicator is not rounded (CommunicatorOptions::wire).
// Around a collective every member has one, and no other is under way.
class Unrounded {
 public:
  explicit Unrounded(Communicator& c) : comm_(c), before_(c.set_wire(kF32)) {}
  ~Unrounded() { comm_.set_wire(before_); }
  Unrounded(const Unrounded&) = delete;

 private:
  Communicator& comm_;
  const DType before_;
};

}  // namespace skein::comm
