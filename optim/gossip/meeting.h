// Meeting: where workers that are at different steps wait for each other.
#pragma once
#include <functional>
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::optim {

// Each worker tells all others that it has come, and serves them until all have come. A worker that waits for another one
// inside its step can ask whether that one has come.
class Meeting {
 public:
  static constexpr double kNap = 1e-3;  // seconds of a wait before it looks whether anything else has changed
  explicit Meeting(comm::Tag tag) : tag_(tag) {}
  // Returns when all have called it as often as this worker. Until then it calls `meanwhile` repeatedly.
  void meet(comm::Communicator&, const std::function<void()>& meanwhile);
  bool has_come(comm::Communicator&, comm::Rank);  // to this worker's next meeting; never waits

 private:
  const comm::Tag tag_;
  int64_t round_ = 0;
  std::vector<bool> here_;
};

}  // namespace skein::optim
