// Explains why a GPU cannot be used and what to install, and formats amounts of memory. It needs no CUDA.
#pragma once
#include <string>

#include "engine/base.h"

namespace skein {

// What the CUDA runtime says about the machine. A version is 13000 for CUDA 13.0, and 0 if there is none.
struct DriverLook {
  enum State : uint8_t { kWorks, kMissing, kTooOld, kNoDevice, kOther } state = kWorks;
  int driver = 0;     // the newest CUDA that the driver can run
  int runtime = 0;    // the CUDA that this program was built with
  std::string words;  // the runtime's own message, for kOther
};
// A message for the user; empty for kWorks.
std::string trouble_with(const DriverLook&);

// What this program must know of a GPU. `built_for` is CMake's list of architectures: code for "80" or "90"
// also runs on later GPUs, code for "80-real" or "90a" only on its own generation.
struct DeviceLook {
  std::string name;
  int major = 0, minor = 0;  // compute capability
};
bool can_run(const DeviceLook&, const std::string& built_for);
// A message for the user; empty if the code can run.
std::string trouble_with(const DeviceLook&, const std::string& built_for);

std::string bytes_in_words(int64_t bytes);  // "411 MB", "139.8 GB": powers of 1000

}  // namespace skein
