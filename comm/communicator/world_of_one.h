// WorldOfOne: a communicator without peers, for programs with one worker.
#pragma once
#include "comm/communicator/communicator.h"

namespace skein::comm {

class WorldOfOne {
 public:
  explicit WorldOfOne(CommunicatorOptions o = {})
      : transport_(std::move(local_world(1)[0])), comm_(*transport_, std::move(o)) {}
  operator Communicator&() { return comm_; }

 private:
  const std::unique_ptr<Transport> transport_;
  Communicator comm_;
};

}  // namespace skein::comm
