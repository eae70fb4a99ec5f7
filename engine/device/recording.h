// What the calling thread is recording, if anything: how primitives keep their calls for later, and how the
// rest of the code behaves while nothing is really computed.
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
// Where the calling thread's primitives of the CPU put their calls; null: they run.
extern constinit thread_local Calls* kept;
}  // namespace recording

// Does the calling thread record work of this device?
bool records(Device);

// For the primitives of the CPU, which begin with
//     if (keeps_calls()) return keep([=] { the same call });
// The call holds addresses, not tensors: memory that the body frees serves the rest of the recording, in
// whose order the calls are made again. It must not hold what is reckoned from values in memory.
inline bool keeps_calls() { return recording::kept != nullptr; }
void keep(std::function<void()> call);

// f belongs to the host and must happen at every replay, between the device's work before and after it.
// Outside of a recording it is called at once; in one it is kept, and called when what was recorded runs. It
// may do anything but outlive what it refers to: no recording, and no memory of one, is in use while it runs.
void between_recorded(std::function<void()> f);

// What cannot be part of a recording says so: the recording is given up, and its body runs plainly from then
// on. Does nothing where the calling thread records nothing. Not to be called where nothing may be thrown.
void refuse_recording(const char* why);

// For allocators: memory is given back that is older than what the calling thread records, if it
// records anything. Recorded::run() then throws Error: a replay would go on using it, and what took its
// place was never computed.
void older_memory_freed() noexcept;

}  // namespace skein
