// The other library's stream is waited for by an event that is recorded in it.
#include "engine/device/foreign.h"

#include "engine/cuda/foreign.h"
#include "engine/seam.h"

namespace skein {

Device device_of_foreign(const void* p) { return {Device::kCuda, cuda::device_of_foreign(p)}; }

void wait_for_foreign(Device d, void* stream) {
  if (!d.is_cuda()) return;
  Stream& ours = current_stream(d);
  const std::shared_ptr<void> event = cuda::record(stream);
  cuda::wait(ours.handle(), event.get());
}

}  // namespace skein
