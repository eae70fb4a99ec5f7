// Recorded: work that is recorded once and replayed from then on. On a GPU this is a CUDA graph, on the CPU
// the list of the primitives' calls, so that the mechanism can be tested without a GPU.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/memory_pool.h"
#include "engine/device/recording.h"

namespace skein {

// A body is a function that queues work of one device. It is run
//   the first time for a key   plainly, in the recording's memory: libraries choose their plans, caches fill;
//   the second time            recorded: the body runs and computes nothing; then what was recorded runs;
//   later                      not at all: what was recorded runs again.
// Every run computes the same as the plain body would, bit for bit, if the body keeps these rules:
//   - whatever differs between runs of one key lies in memory the body does not own: in tensors made before,
//     in slots (slot.h). What the host decides by (shapes, flags) is part of the key.
//   - results are written to tensors made before. Memory taken in the body holds nothing after a run; memory
//     from before is not freed in it: Error says so.
//   - the host reads nothing back and waits for nothing. What must happen on the host meanwhile goes through
//     between_recorded().
// A body that cannot be recorded (refuse_recording(), or the capture fails) runs plainly for good. Errors
// thrown by the body pass through and leave nothing recorded. One thread at a time, always the same stream.
class Recorded {
 public:
  using Key = std::vector<int64_t>;
  static constexpr size_t kMostKeys = 16;  // further ones run plainly
  using Body = std::function<void()>;
  enum class Way : uint8_t { kPlain, kWarmUp, kRecorded, kReplayed };

  // `name` appears in errors and in messages. `say` is called once with the reason if the
  // body cannot be recorded.
  Recorded(Device, std::string name, std::function<void(const std::string&)> say = {});
  ~Recorded();  // waits for its last run
  Recorded(const Recorded&) = delete;

  // Returns how the body was run. Throws Error if called while the thread warms up or records another one.
  Way run(const Key&, const Body&);

  const std::string& refused() const { return refused_; }  // why it runs plainly; empty if it does not
  // The length of a key's recording: nodes of the graph on a GPU, calls on the CPU; 0 if there is none yet.
  int64_t length(const Key&) const;
  const MemoryPool& memory() const { return *pool_; }  // shared by all keys: one runs at a time

 private:
  struct Entry {
    bool warm = false, recorded = false;
    Calls calls;
    int64_t length = 0;
  };
  std::string record(Entry&, const Body&) const;
  std::string record_with_room(Entry&, const Body&) const;
  void refuse(const std::string& why);
  void give_up_memory();
  void replay(const Entry&) const;

  const Device device_;
  const std::string name_;
  const std::function<void(const std::string&)> say_;
  std::unique_ptr<MemoryPool> pool_;
  std::map<Key, Entry> entries_;
  std::string refused_;
  bool ran_ = false;
};

}  // namespace skein
