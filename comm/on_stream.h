// OnStream: another current stream for the calling thread.
#pragma once
#include "engine/device/device.h"

namespace skein::comm {

// While it lives, this thread's work on the device goes to that stream, and memory that it allocates there
// belongs to it.
class OnStream {
 public:
  explicit OnStream(const Stream& s) : here_(current_stream(s.device())), own_(here_) { here_ = s; }
  ~OnStream() { here_ = own_; }
  OnStream(const OnStream&) = delete;

 private:
  Stream& here_;
  const Stream own_;
};

}  // namespace skein::comm
