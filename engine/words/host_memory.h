// How much memory this machine has.
#pragma once
#include <unistd.h>

#include <cstdint>

namespace skein {

// Bytes. A file, message or mapping that claims to be larger is refused.
inline int64_t host_memory() {
  static const int64_t bytes = int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);  // a system call
  return bytes;
}

}  // namespace skein
