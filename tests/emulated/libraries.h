// Functions of vendor libraries in whose place the emulated device has its own. All others are the library's.
#pragma once

namespace skein::emulated {

// The emulated function of that name; null where the library's own will do. `library` is open for as long as
// the program runs: what a function needs of the real one it finds there.
void* cudnn_function(void* library, const char* name);
void* cublas_function(void* library, const char* name);

}  // namespace skein::emulated
