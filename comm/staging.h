// Tensors of a device on their way to and from messages: pinned host memory, kept until the device is done
// with it.
#pragma once
#include <mutex>
#include <utility>
#include <vector>

#include "engine/tensor.h"

namespace skein::comm {

// Thread-safe. Tensors of the host pass through as they are.
class Staging {
 public:
  ~Staging();  // waits for copies under way
  struct Landing {
    Tensor host;  // one axis
    Event ready;  // when its bytes are there
  };
  // A copy in pinned memory, queued on the calling thread's stream; the host does not wait. Of a tensor of
  // the host: a window on it.
  Landing down(const Tensor& x);
  // to <- host, queued on the calling thread's stream; the host does not wait, and `host` is the caller's
  // again at once.
  void up(const Tensor& to, const Tensor& host);
  // A copy on the device, which is `host` itself where that is the host.
  Tensor up(Device, const Tensor& host);
  // to <- host, which came from down() and is not written again by the caller.
  void back(const Tensor& to, const Tensor& host);

 private:
  void hold(Device, Tensor host);
  std::mutex mutex_;
  std::vector<std::pair<Event, Tensor>> held_;  // what the device may still be reading
};

}  // namespace skein::comm
