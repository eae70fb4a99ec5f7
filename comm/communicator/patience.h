// Patience: another deadline for a while.
#pragma once
#include "comm/communicator/communicator.h"

namespace skein::comm {

// While it lives, waits of this communicator have this deadline.
class Patience {
 public:
  explicit Patience(Communicator& c, double seconds = kForever)
      : comm_(c), before_(c.set_deadline(seconds)) {}
  ~Patience() { comm_.set_deadline(before_); }
  Patience(const Patience&) = delete;

 private:
  Communicator& comm_;
  const double before_;
};

}  // namespace skein::comm
