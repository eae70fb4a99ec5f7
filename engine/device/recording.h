// What the calling thread is recording: how primitives keep their calls for later, and how other code behaves
// while nothing is computed.
//
// While a thread records (graph.h) no work is done: on a GPU its stream is captured, on the CPU each
// primitive keeps its call. Memory holds no results, so the host may decide nothing by them.
#pragma once
#include <functional>
#include <vector>

#include "engine/device/device.h"

namespace skein {

using Calls = std::vector<std::function<void()>>;

namespace recording {
// Where the CPU primitives of the calling thread put their calls; null: they run at once.
extern constinit thread_local Calls* kept;
}  // namespace recording

// Does the calling thread record work of this device?
bool records(Device);

// CPU primitives begin with
//     if (keeps_calls()) return keep([=] { the same call });
// The call holds addresses, not tensors: memory that the body frees serves the rest of the recording, and the
// calls are repeated in the same order. It must not hold anything computed from values in memory.
inline bool keeps_calls() { return recording::kept != nullptr; }
void keep(std::function<void()> call);

// f runs on the host at every replay, between the device's work before it and after it. Outside of a
// recording it is called at once; inside it is kept and called at each replay. It may do anything, because no
// recording and no memory of one is in use while it runs, but what it refers to must outlive the recording.
void between_recorded(std::function<void()> f);

// Code that cannot be part of a recording calls this: the recording is abandoned, and its body runs
// plainly from then on. Does nothing if the calling thread is not recording. It throws, so noexcept code
// must not call it.
void refuse_recording(const char* why);

// Allocators call this when memory is freed that is older than what the calling thread records, if it
// records. Recorded::run() then throws Error, because a replay would go on using that memory.
void older_memory_freed() noexcept;

}  // namespace skein
