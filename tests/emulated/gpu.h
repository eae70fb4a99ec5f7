// A CUDA device in software, for tests on machines without one: the programs' own CUDA code runs, its kernels
// as host loops, on memory that the host cannot access, in streams that do nothing until there is a wait.
//
// It is stricter than a GPU where wrong code could happen to work on one:
//   memory    The host can access the device's memory only while the device works; any other access ends the
//             program with a message. New memory is full of NaNs. Kernels are refused addresses of the host.
//   streams   Work is done when a wait needs it and not before, other streams' work only if an event requires
//             it, so that code that misses a wait always reads the old values.
//   copies    From pinned memory they read when they are executed, not when they are queued; from other
//             memory they read at once, and to it they wait, as CUDA's do.
//   capture   What CUDA refuses while a stream is captured is refused.
//   threads   Each begins at device 0, as CUDA's do; kernels are launched on the device that is current.
//   errors    An error that the code did not query is reported by the next kernel's launch.
// One device by default; SKEIN_EMULATED_GPUS sets the number. Thread-safe; one piece of work runs at a time.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace skein::emulated {

using Work = std::function<void()>;

// Appends to a stream (a cudaStream_t), whatever its state: `what` is for messages.
void enqueue(void* stream, const char* what, Work);
// Called before a kernel: ends the program if the stream belongs to another device than the calling thread's.
void check_place(void* stream);

// Whether all of it is a device's memory or pinned.
bool reachable(const void* from, size_t bytes);
// Ends the program if a word of the functor is an address of host memory, or of memory that was freed.
void check_arguments(const char* what, const void* functor, size_t bytes);
// Checks only for freed memory, when the kernel runs, because a graph may hold addresses for long.
void check_alive(const char* what, const void* functor, size_t bytes);
// The devices that this process has used; on a real one each then keeps some hundred MB for the process.
std::vector<int> devices_in_use();
// Prints and ends the program: the emulated device has found a fault that a real one might not show.
[[noreturn]] void fault(const std::string& what);

}  // namespace skein::emulated
