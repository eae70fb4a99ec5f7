// Tensors of a device on their way to and from messages: through pinned host memory, kept until the device is
// done with it, or as they lie.
#pragma once
#include <mutex>
#include <optional>
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
  // to <- from, which may lie anywhere. To a device the copy is queued on the calling thread's stream and the
  // host does not wait; a `from` of the host is the caller's again at once.
  void bring(const Tensor& to, const Tensor& from);
  // A copy of x on that device; x itself where it is there already.
  Tensor beside(Device, const Tensor& x);
  // x, on a device, in another type. It is there for all streams on return: the host waits for this one pass,
  // not for what the calling thread's stream has to do.
  Tensor converted(DType, const Tensor& x);
  // to <- host, which came from down() and is not written again by the caller.
  void back(const Tensor& to, const Tensor& host);

 private:
  Tensor fetched(const Tensor& x);  // on the host; waits
  void up(const Tensor& to, const Tensor& host);
  void hold(Device, Tensor host);
  Stream aside(Device);
  std::mutex mutex_;
  std::optional<Stream> aside_;
  std::vector<std::pair<Event, Tensor>> held_;  // what the device may still be reading
};

}  // namespace skein::comm
