// Meeting: where workers that are at different steps wait for each other.
#pragma once
#include <algorithm>
#include <functional>

#include "comm/communicator/communicator.h"

namespace skein::optim {

// The workers form a tree. Each tells its parent when it and all below it have come, and the root's answer
// goes back down, so that a meeting of n workers takes 2 (n - 1) messages. All serve each other until they
// have that answer.
class Meeting {
 public:
  // Seconds for which a wait for one message sleeps before it looks whether anything else has come, when it
  // has lasted for `waited` seconds.
  static double nap(double waited) { return std::clamp(waited, 1e-3, 8e-3); }
  explicit Meeting(comm::Tag tag) : tag_(tag) {}
  // Returns when all have called it as often as this worker. Until then it calls `meanwhile` repeatedly.
  void meet(comm::Communicator&, const std::function<void()>& meanwhile);

 private:
  const comm::Tag tag_;
  int64_t round_ = 0;
};

}  // namespace skein::optim
