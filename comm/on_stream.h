// OnStream: what the calling thread does on a device goes to another stream for a while.
#pragma once
#include "engine/device/device.h"

namespace skein::comm {

// While it lives; memory that is taken of the device meanwhile belongs to that stream, too.
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
