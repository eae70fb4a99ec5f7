// What an emulated device consists of: its memory, its streams with the work that waits in them, captures.
#pragma once
#include <cuda_runtime.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/emulated/gpu.h"

namespace skein::emulated {

constexpr size_t kPage = 4096;
using Clock = std::chrono::steady_clock;

// A range of addresses that are handed out once and never again: what is used after it was
// freed stays in sight.
class Arena {
 public:
  explicit Arena(bool closed);
  void* take(size_t bytes);                     // null where none is left
  size_t give(void*);                           // its bytes; 0: it is no block's first address
  bool holds(const void*, size_t bytes) const;  // within one block
  bool around(const void* p) const;             // of any block, also of one that is gone
  // For the calling thread and the threads it makes, where the processor has keys for memory;
  // else for the process.
  void open();
  void close();

 private:
  char* first_ = nullptr;
  size_t used_ = 0;
  int key_ = -1;
  std::map<void*, size_t> blocks_;
};

struct Piece {
  const char* what;
  Work work;
};

struct Stream;
// What a captured stream, and those that joined it, were asked to do: in the order of asking, in
// which it is replayed.
struct Capture {
  Stream* origin = nullptr;
  std::thread::id thread;  // who may not do what capturing forbids
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
  std::shared_ptr<Clock::time_point> time;  // when the stream came to it; none: it keeps no time
};

struct Gpu {
  std::recursive_mutex mutex;
  Arena memory{true}, pinned{false};
  std::map<Stream*, std::unique_ptr<Stream>> streams;  // never taken out: events may name those that are gone
  std::vector<std::shared_ptr<Capture>> captures;      // under way
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
void run(Stream&, int64_t place);  // its work up to there
void run_all();
// Calls f with the device's memory open, on the device's thread, and waits for it.
void on_device_thread(const Work& f);
// Is what the calling thread does forbidden, because it captures? Then the capture is spoiled. What waits for
// the device is forbidden in a relaxed mode, too.
bool forbidden(bool waits = false);

}  // namespace skein::emulated
