// Streams of an emulated device: queues whose work is done when a wait needs it; events; copies.
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <string>

#include "tests/emulated/state.h"

namespace skein::emulated {

namespace {
Stream& add_stream(int device, int priority) {
  auto made = std::make_unique<Stream>();
  made->device = device, made->priority = priority;
  Stream& s = *made;
  gpu().streams.emplace(&s, std::move(made));
  return s;
}
// The calling thread's device has one, which other libraries use. Ours never does, so null is no stream here.
Stream& default_stream() {
  Stream*& s = gpu().defaults[device_here()];
  if (!s) s = &add_stream(device_here(), 0);
  return *s;
}
}  // namespace

Stream& stream_at(void* handle) {
  if (handle == cudaStreamLegacy) return default_stream();
  const auto at = gpu().streams.find(static_cast<Stream*>(handle));
  if (at == gpu().streams.end()) fault("work is queued on a stream that is none");
  return *at->second;
}

namespace {

// The thread that does the device's work, one per process (a child of fork() gets its own). The waiting
// thread cannot do it, because it may be ending and its thread-local state destroyed.
class Worker {
 public:
  void run(const Work& work) {
    if (std::this_thread::get_id() == id_) return work();  // the work itself waits for other work
    std::unique_lock lock(mutex_);
    work_ = &work;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !work_; });
  }
  static Worker& of_this_process() {
    static Worker* mine = nullptr;
    static pid_t process = 0;
    if (process != getpid()) mine = new Worker, process = getpid();
    return *mine;
  }

 private:
  Worker() : id_(thread_.get_id()) { thread_.detach(); }
  void work_for_ever() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return work_; });
      gpu().memory.open();
      (*work_)();
      gpu().memory.close();
      work_ = nullptr;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  const Work* work_ = nullptr;
  std::thread thread_{[this] { work_for_ever(); }};
  const std::thread::id id_;
};

void do_work(Stream& s, int64_t place) {
  if (s.running && s.done < place) fault("streams wait for each other in a circle");
  const bool was = s.running;
  s.running = true;
  while (s.done < place) {
    const Piece piece = std::move(s.waiting.front());
    s.waiting.pop_front();
    try {
      piece.work();
    } catch (const std::exception& e) { fault((std::string(piece.what) + ": " + e.what()).c_str()); }
    ++s.done;
  }
  s.running = was;
}

}  // namespace

// The caller holds the lock for as long as the device's thread works.
void on_device_thread(const Work& f) { Worker::of_this_process().run(f); }
void run(Stream& s, int64_t place) {
  if (s.done < place) on_device_thread([&] { do_work(s, place); });
}
void run_all() {
  for (auto& [key, s] : gpu().streams) run(*s, s->asked);
}

void enqueue(void* stream, const char* what, Work work) {
  const Lock lock(gpu().mutex);
  Stream& s = stream_at(stream);
  if (s.capture) {
    s.capture->pieces.push_back({what, std::move(work)});
    s.loose = s.capture->origin != &s;
    return;
  }
  s.waiting.push_back({what, std::move(work)});
  ++s.asked;
}

namespace {
// Refuses a wait of the host for captured work, which would never end.
cudaError_t refused(const std::shared_ptr<Capture>& capture, cudaError_t why) {
  capture->broken = true;
  return said(why);
}
}  // namespace
}  // namespace skein::emulated

using namespace skein::emulated;

extern "C" {

// Priorities are stored but have no effect, because work runs when a wait needs it.
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned, int priority) {
  const Lock lock(gpu().mutex);
  *s = reinterpret_cast<cudaStream_t>(&add_stream(device_here(), priority));
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned flags) {
  return cudaStreamCreateWithPriority(s, flags, 0);
}
cudaError_t cudaStreamGetPriority(cudaStream_t s, int* priority) {
  const Lock lock(gpu().mutex);
  return *priority = stream_at(s).priority, cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  const Lock lock(gpu().mutex);
  Stream& mine = stream_at(s);
  run(mine, mine.asked);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  const Lock lock(gpu().mutex);
  Stream& mine = stream_at(s);
  if (mine.capture) return refused(mine.capture, cudaErrorStreamCaptureUnsupported);
  run(mine, mine.asked);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  const Lock lock(gpu().mutex);
  Stream& mine = stream_at(s);
  const Event until = *reinterpret_cast<Event*>(e);
  if (until.capture) {  // the stream joins the capture
    const auto& all = gpu().captures;
    if (std::find(all.begin(), all.end(), until.capture) == all.end())
      return mine.capture ? refused(mine.capture, cudaErrorCapturedEvent) : said(cudaErrorCapturedEvent);
    if (mine.capture && mine.capture != until.capture)
      return refused(mine.capture, cudaErrorStreamCaptureIsolation);
    mine.capture = until.capture;
    until.stream->loose = false;
    return cudaSuccess;
  }
  if (mine.capture && until.stream) return refused(mine.capture, cudaErrorStreamCaptureIsolation);
  if (until.stream) enqueue(s, "wait for an event", [until] { run(*until.stream, until.place); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned flags) {
  auto* const made = new Event{device_here(), nullptr, 0, nullptr, nullptr};
  if (!(flags & cudaEventDisableTiming)) made->time = std::make_shared<Clock::time_point>();
  *e = reinterpret_cast<cudaEvent_t>(made);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) { return delete reinterpret_cast<Event*>(e), cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  const Lock lock(gpu().mutex);
  Stream& mine = stream_at(s);
  Event& event = *reinterpret_cast<Event*>(e);
  if (event.device != mine.device) return said(cudaErrorInvalidResourceHandle);
  if (event.time && !mine.capture) enqueue(s, "note the time", [at = event.time] { *at = Clock::now(); });
  event = {event.device, &mine, mine.asked, mine.capture, event.time};
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const Lock lock(gpu().mutex);
  const Event a = *reinterpret_cast<Event*>(from), b = *reinterpret_cast<Event*>(to);
  if (!a.time || !b.time || !a.stream || !b.stream) return said(cudaErrorInvalidResourceHandle);
  if (a.stream->done < a.place || b.stream->done < b.place) return said(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(*b.time - *a.time).count();
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  const Lock lock(gpu().mutex);
  const Event until = *reinterpret_cast<Event*>(e);
  device_here();
  if (until.capture) return refused(until.capture, cudaErrorCapturedEvent);
  if (until.stream) run(*until.stream, until.place);
  return cudaSuccess;
}
// Each query runs a piece of the stream's work, so that polling ends.
cudaError_t cudaEventQuery(cudaEvent_t e) {
  const Lock lock(gpu().mutex);
  const Event until = *reinterpret_cast<Event*>(e);
  device_here();
  if (until.capture) return refused(until.capture, cudaErrorCapturedEvent);
  if (forbidden()) return said(cudaErrorStreamCaptureUnsupported);
  if (!until.stream || until.stream->done >= until.place) return cudaSuccess;
  run(*until.stream, until.stream->done + 1);
  return cudaErrorNotReady;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t s) {
  const Lock lock(gpu().mutex);
  const auto of_device = [](const void* p) { return gpu().memory.around(p); };
  if ((of_device(to) && !reachable(to, bytes)) || (of_device(from) && !reachable(from, bytes)))
    fault("a copy reaches beyond a block of the device's memory");
  const bool late = reachable(from, bytes), lands = reachable(to, bytes);
  Stream& mine = stream_at(s);
  if (mine.capture && !(late && lands)) return refused(mine.capture, cudaErrorStreamCaptureUnsupported);
  if (late) {
    enqueue(s, "copy", [=] { memmove(to, from, bytes); });
  } else {
    const char* first = static_cast<const char*>(from);
    enqueue(s, "copy",
            [to, read = std::vector<char>(first, first + bytes)] { memcpy(to, read.data(), read.size()); });
  }
  return lands ? cudaSuccess : cudaStreamSynchronize(s);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t s) {
  const Lock lock(gpu().mutex);
  if (!reachable(to, bytes)) fault("cudaMemsetAsync gets memory that is not the device's");
  enqueue(s, "clear", [=] { memset(to, value, bytes); });
  return cudaSuccess;
}

}  // extern "C"
