// The state of an emulated device: its memory, its streams with their queued work, and captures.
#pragma once
#include <cuda_runtime.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "tests/emulated/gpu.h"

namespace skein::emulated {

constexpr size_t kPage = 4096;
using Clock = std::chrono::steady_clock;

// A range of addresses that are handed out only once, so that use after free is detected.
class Arena {
 public:
  explicit Arena(bool closed);
  void* take(size_t bytes, int device);  // null if none is left
  size_t give(void*);                    // its bytes; 0 if it is not the first address of a block
  // Whose block holds all of it; nothing if none does.
  std::optional<int> device_of(const void*, size_t bytes) const;
  bool holds(const void* p, size_t bytes) const { return device_of(p, bytes).has_value(); }
  bool around(const void* p) const;  // inside any block, also a freed one
  // Opens it for the calling thread and the threads it makes, if the processor has memory protection keys;
  // else for the process.
  void open();
  void close();

 private:
  char* first_ = nullptr;
  size_t used_ = 0;
  int key_ = -1;
  struct Block {
    size_t bytes = 0;
    int device = 0;
  };
  std::map<void*, Block> blocks_;
};

struct Piece {
  const char* what;
  Work work;
};

struct Stream;
// The work queued on a captured stream, and on those that joined it, in the order of queueing, in
// which it is replayed.
struct Capture {
  Stream* origin = nullptr;
  std::thread::id thread;  // the thread that may not do what capturing forbids
  bool relaxed = false, broken = false;
  std::vector<Piece> pieces;
};

struct Stream {
  int device = 0, priority = 0;
  int64_t asked = 0, done = 0;  // pieces of work so far
  std::deque<Piece> waiting;
  bool running = false;
  std::shared_ptr<Capture> capture;
  bool loose = false;  // it has captured work that the capture's origin does not wait for
};
struct Event {  // the last time it was recorded
  int device = 0;
  Stream* stream = nullptr;
  int64_t place = 0;
  std::shared_ptr<Capture> capture;
  std::shared_ptr<Clock::time_point> time;  // when the stream reached it; null if it keeps no time
};

struct Gpu {
  std::recursive_mutex mutex;
  Arena memory{true}, pinned{false};
  // Never removed, because events may refer to destroyed ones.
  std::map<Stream*, std::unique_ptr<Stream>> streams;
  std::map<int, Stream*> defaults;                 // by device: CUDA's default stream
  std::vector<std::shared_ptr<Capture>> captures;  // in progress
  int64_t used = 0;
  std::set<int> in_use;
};
Gpu& gpu();
using Lock = std::lock_guard<std::recursive_mutex>;

// The calling thread's device, which is in use from now on.
int device_here();
// Keeps an error for the thread's next cudaGetLastError().
cudaError_t said(cudaError_t);

Stream& stream_at(void* handle);
void run(Stream&, int64_t place);  // runs its work up to `place`
void run_all();
// Calls f with the device's memory open, on the device's thread, and waits for it.
void on_device_thread(const Work& f);
// Whether the current call is forbidden because the calling thread captures; if so, the capture becomes
// invalid. Calls that wait for the device are forbidden in relaxed mode, too.
bool forbidden(bool waits = false);

}  // namespace skein::emulated
