// What a Pending points at: a collective as a state machine that every call of progress() pushes along.
#pragma once
#include "comm/communicator.h"

namespace skein::comm {

struct Pending::Op {
  virtual ~Op() = default;
  // Does all that can be done without waiting; sets `done`, or `missing` to a message it lacks.
  virtual void advance(Communicator&) = 0;
  bool done = false;
  Key missing;
};

}  // namespace skein::comm
