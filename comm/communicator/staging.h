// Staging: copies between a device's tensors and the host's messages, through pinned memory.
#pragma once
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/tensor.h"

namespace skein::comm {

// Pinned memory is kept until the device has used it. Tensors of the host are passed on without
// a copy. Thread-safe.
class Staging {
 public:
  ~Staging();  // waits for copies under way
  struct Landing {
    Tensor host;  // one axis
    Event ready;  // its bytes have arrived
  };
  // Queues a copy to pinned memory on the calling thread's stream; the host does not wait. A tensor of the
  // host is not copied: the result is a window on it.
  Landing down(const Tensor& x);
  // to <- from, which may lie anywhere. A copy to a device is queued on the calling thread's stream and the
  // host does not wait for it; a `from` on the host may be written again at once.
  void bring(const Tensor& to, const Tensor& from);
  // Returns a copy of x on that device, or x itself if it lies there.
  Tensor beside(Device, const Tensor& x);
  // Returns x, which lies on a device, in another type. All streams may read the result: the host waits for
  // this one pass, but not for the work of the calling thread's stream.
  Tensor converted(DType, const Tensor& x);
  // to <- host, which came from down() and which the caller does not write again.
  void back(const Tensor& to, const Tensor& host);

 private:
  Tensor fetched(const Tensor& x);  // on the host; waits
  void up(const Tensor& to, const Tensor& host);
  void hold(Device, Tensor host);
  Stream aside(Device);
  std::mutex mutex_;
  std::optional<Stream> aside_;
  std::vector<std::pair<Event, Tensor>> held_;  // the device may still be reading these
};

}  // namespace skein::comm
