// What device.cc and tensor.cc ask of the CUDA runtime, without its headers. Defined in runtime.cu, which
// only a CUDA build compiles; a CPU build never names these outside a discarded `if constexpr (kHasCuda)`.
#pragma once
#include <memory>

#include "engine/device.h"
#include "engine/device_trouble.h"

namespace skein::cuda {

int device_count() noexcept;
DriverLook look_at_driver() noexcept;
void require_usable(int index);  // throws Error; the index is of a device
std::string describe(int index);
std::string libraries();          // opens cuDNN and cuBLASLt: "cuDNN 9.19.0, cuBLASLt 13.1.0"; handles.cc
std::string identity(int index);  // tells this GPU from all others of the host: its UUID
int64_t free_memory(int index) noexcept;
int64_t cache_bytes(int index);            // of the cache that all its multiprocessors share
void make_current(int index);              // for the calling thread
void* allocate(int index, int64_t bytes);  // null when there is no memory left
void release(int index, void*) noexcept;
void* allocate_pinned(int64_t bytes);  // null when there is no memory left
void release_pinned(void*) noexcept;
std::shared_ptr<void> make_stream(int index, bool urgent);
std::shared_ptr<void> record(void* stream);  // an event
void wait(void* stream, void* event);
void sync_stream(void* stream);
void sync_event(void* event);
bool event_ready(void* event);
void copy(void* to, const void* from, int64_t bytes, void* stream);  // any direction, ordered in the stream
void clear(void* to, int64_t bytes, void* stream);

}  // namespace skein::cuda
