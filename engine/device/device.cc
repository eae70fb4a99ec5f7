// Devices, streams and events. CUDA is called through the seam.
#include "engine/device/device.h"

#include <map>
#include <ostream>

#include "engine/device/caching_allocator.h"
#include "engine/device/device_group.h"
#include "engine/device/recording.h"
#include "engine/seam.h"

namespace skein {

std::ostream& operator<<(std::ostream& s, Device d) {
  return d.is_host() ? s << "cpu" : s << (d.is_cuda() ? "cuda:" : "apart:") << d.index;
}

int cuda_device_count() {
  static const int n = kHasCuda ? cuda::device_count() : 0;
  return n;
}

void Event::sync() const {
  if (!handle_) return;
  refuse_recording("the host waits for an event of the device");
  cuda::sync_event(handle_.get());
}
bool Event::ready() const { return !handle_ || cuda::event_ready(handle_.get()); }

namespace {
// A thread's streams. Memory may be freed after they are destroyed, at the end of the thread or of the
// program; that must not make new streams.
struct Streams {
  std::map<std::pair<int, int>, Stream> of;
  ~Streams() { ended = true; }
  static thread_local bool ended;
};
thread_local bool Streams::ended = false;
Streams& streams() {
  thread_local Streams mine;
  return mine;
}
}  // namespace

Stream* existing_stream(Device d) {
  if (Streams::ended) return nullptr;
  auto& of = streams().of;
  const auto at = of.find({d.kind, d.index});
  return at == of.end() ? nullptr : &at->second;
}

namespace {
thread_local bool urgently = false;  // whether the calling thread now makes streams of high priority
}
Stream::Stream(Device d) : device_(d) {
  if (!d.is_cuda()) return;
  std::shared_ptr<void> made = cuda::make_stream(d.index, urgently);
  handle_ = {made.get(), [d, made](void* stream) { retire_stream(d, stream); }};
}
Stream urgent_stream(Device d) {
  const struct Urgently {
    Urgently() { urgently = true; }
    ~Urgently() { urgently = false; }
  } now;
  return Stream(d);
}
void Stream::wait(const Event& e) {
  if (handle_ && e.handle_) cuda::wait(handle_.get(), e.handle_.get());
}
Event Stream::record() {
  Event e;
  if (handle_) e.handle_ = cuda::record(handle_.get());
  return e;
}
void Stream::sync() {
  if (records(device_)) refuse_recording("the host waits for the device");
  if (handle_) cuda::sync_stream(handle_.get());
}

Stream& current_stream(Device d) { return streams().of.try_emplace({d.kind, d.index}, d).first->second; }

}  // namespace skein
