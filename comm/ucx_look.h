// What UCX is here, found out by starting it: for --doctor.
#pragma once
#include <string>
#include <vector>

namespace skein::comm {

struct UcxFacts {
  std::string version;
  std::vector<std::string> resources;  // "tcp/eth0", "posix/memory", ...
  std::string trouble;                 // why no messages can be received; empty: they can
};
// Opens the library and makes what a worker makes. Throws Error if the library cannot be opened.
UcxFacts look_at_ucx();

}  // namespace skein::comm
