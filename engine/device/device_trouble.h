// Why a GPU cannot be used, in words that say what to install; and amounts of memory in
// words. No CUDA needed.
#pragma once
#include <string>

#include "engine/base.h"

namespace skein {

// What the CUDA runtime says about the machine. Versions as 13000 for CUDA 13.0; 0: there is none.
struct DriverLook {
  enum State : uint8_t { kWorks, kMissing, kTooOld, kNoDevice, kOther } state = kWorks;
  int driver = 0;     // the newest CUDA that the driver can run
  int runtime = 0;    // the CUDA that this program was built with
  std::string words;  // the runtime's own, for kOther
};
// One message; empty for kWorks.
std::string trouble_with(const DriverLook&);

// What a GPU is to this program. `built_for`: CMake's architectures, "80 90", each for that one and what
// comes after it ("80-real" and "90a" only for their own generation).
struct DeviceLook {
  std::string name;
  int major = 0, minor = 0;  // compute capability
};
bool can_run(const DeviceLook&, const std::string& built_for);
// One message; empty where the code can run.
std::string trouble_with(const DeviceLook&, const std::string& built_for);

std::string bytes_in_words(int64_t bytes);  // "411 MB", "139.8 GB": powers of 1000

}  // namespace skein
