// Functions of vendor libraries that the emulated device replaces by its own. All others are the library's.
#pragma once

namespace skein::emulated {

// The emulated function of this name; null if the library's own serves. `library` stays open until the
// program ends, so emulated functions can call the real ones.
void* cudnn_function(void* library, const char* name);
void* cublas_function(void* library, const char* name);

}  // namespace skein::emulated
