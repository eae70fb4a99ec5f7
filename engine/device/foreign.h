// Memory and streams that belong to another library of the process, such as a framework.
#pragma once
#include "engine/device/device.h"

namespace skein {

// Where this address lies. Throws Error if no GPU can use it.
Device device_of_foreign(const void*);

// The calling thread's stream of this device begins its later work when the work that another stream has so
// far is done. `stream` is a cudaStream_t. On the host there is nothing to wait for.
void wait_for_foreign(Device, void* stream);

}  // namespace skein
