// Recording by thread: the list of the CPU's calls, or captured pieces of a stream with
// host functions between them.
#include "engine/device/graph.h"

#include <utility>

#include "engine/cuda/graph.h"
#include "engine/device/memory.h"

namespace skein {

namespace recording {
constinit thread_local Calls* kept = nullptr;
}

namespace {

// The recording of the calling thread.
struct Current {
  Device device;
  Calls* calls;
  int64_t* length;
  bool older_freed = false;
};
constinit thread_local Current* g_current = nullptr;
// The Recorded whose body the calling thread is in, warming up or recording.
constinit thread_local const std::string* g_body = nullptr;

// Thrown by refuse_recording() and caught by Recorded; it never reaches a caller.
struct Refusal {
  std::string why;
};

// Sets a variable of the thread and restores it at the end of the scope.
template <class T>
class Meanwhile {
 public:
  Meanwhile(T& variable, T value) : variable_(variable), before_(std::exchange(variable, value)) {}
  ~Meanwhile() { variable_ = before_; }
  Meanwhile(const Meanwhile&) = delete;

 private:
  T& variable_;
  const T before_;
};

void* stream_of(Device d) { return current_stream(d).handle(); }

void begin_piece(Device d) {
  if (d.is_cuda()) cuda::begin_capture(stream_of(d));
}
// Turns what was captured since begin_piece() into one call.
void end_piece(const Current& c) {
  if (!c.device.is_cuda()) return;
  const cuda::Graph graph = cuda::end_capture(stream_of(c.device));
  *c.length += graph.nodes;
  if (graph.executable) c.calls->push_back([graph, d = c.device] { cuda::launch(graph, stream_of(d)); });
}

}  // namespace

bool records(Device d) { return g_current && g_current->device == d; }

void keep(std::function<void()> call) {
  ++*g_current->length;
  recording::kept->push_back(std::move(call));
}

void between_recorded(std::function<void()> f) {
  if (!g_current) {
    const Meanwhile<const std::string*> outside(g_body, nullptr);
    const MemoryPool::Use own(nullptr);
    return f();
  }
  end_piece(*g_current);
  g_current->calls->push_back(std::move(f));
  begin_piece(g_current->device);
}

void refuse_recording(const char* why) {
  if (g_current) throw Refusal{why};
}

void older_memory_freed() noexcept {
  if (g_current) g_current->older_freed = true;
}

Recorded::Recorded(Device d, std::string name, std::function<void(const std::string&)> say)
    : device_(d), name_(std::move(name)), say_(std::move(say)), pool_(std::make_unique<MemoryPool>(d)) {}

Recorded::~Recorded() {
  if (!ran_) return;
  try {
    current_stream(device_).sync();
  } catch (const Error&) {  // a lost device has no work to wait for
  }
}

int64_t Recorded::length(const Key& key) const {
  const auto at = entries_.find(key);
  return at == entries_.end() ? 0 : at->second.length;
}

void Recorded::refuse(const std::string& why) {
  refused_ = why;
  pool_ = std::make_unique<MemoryPool>(device_);  // the plain body takes its memory elsewhere
  if (say_) say_(text(name_, " is not recorded and runs plainly: ", why));
}

void Recorded::replay(const Entry& e) const {
  for (const auto& call : e.calls) call();
}

// Returns why the body cannot be recorded; empty if it was.
std::string Recorded::record(Entry& e, const Body& body) const {
  Current current{device_, &e.calls, &e.length};
  bool capturing = false;
  // Ends the capture and drops the partial recording. Returns true if the capture was sound up to here.
  const auto drop = [&] {
    const bool sound = !device_.is_cuda() || (capturing && cuda::abandon_capture(stream_of(device_)));
    e.calls.clear();
    e.length = 0;
    return sound;
  };
  try {
    const Meanwhile<Current*> recording(g_current, &current);
    const Meanwhile<Calls*> keeping(recording::kept, device_.is_cuda() ? nullptr : &e.calls);
    begin_piece(device_);
    capturing = true;
    body();
    if (current.older_freed)
      throw Error(text(name_, " gives back memory from before it, which its recording would go on using; ",
                       "--cuda-graphs off does without recordings"));
    capturing = false;  // the next call ends it, even if it throws
    end_piece(current);
  } catch (const Refusal& r) {
    drop();
    return r.why;
  } catch (const OutOfMemory&) {
    drop();
    throw;
  } catch (const Error& error) {
    if (drop()) throw;    // the body's own error
    return error.what();  // the capture's error: something in the body cannot be captured
  } catch (...) {
    drop();
    throw;
  }
  e.recorded = true;
  return "";
}

// Giving unused memory back to the system waits for the device, which a recording cannot do. So a recording
// that runs short of memory is dropped, unused memory is freed, and the body is recorded once more.
std::string Recorded::record_with_room(Entry& e, const Body& body) const {
  try {
    return record(e, body);
  } catch (const OutOfMemory&) { release_cached(device_); }
  return record(e, body);
}

// Frees the memory given to a body that failed, unless recordings need it.
void Recorded::give_up_memory() {
  for (const auto& [key, e] : entries_)
    if (e.recorded) return;
  pool_ = std::make_unique<MemoryPool>(device_);
}

Recorded::Way Recorded::run(const Key& key, const Body& body) {
  if (!refused_.empty()) return body(), Way::kPlain;
  if (g_body)
    throw Error(text(name_, " is asked for while ", *g_body, " is recorded: recordings do not nest"));
  if (entries_.size() >= kMostKeys && !entries_.contains(key)) return body(), Way::kPlain;
  ran_ = true;
  Entry& e = entries_[key];
  if (e.recorded) return replay(e), Way::kReplayed;
  std::string why;
  try {
    const Meanwhile<const std::string*> inside(g_body, &name_);
    const MemoryPool::Use own(pool_.get());
    if (!e.warm) {
      body();
      e.warm = true;
      return Way::kWarmUp;
    }
    why = record_with_room(e, body);
  } catch (...) {
    give_up_memory();
    throw;
  }
  if (why.empty()) return replay(e), Way::kRecorded;
  refuse(why);
  return body(), Way::kPlain;
}

}  // namespace skein
