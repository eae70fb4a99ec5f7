// What UCX can do on this machine, found out by starting it: for --doctor, and before it moves GPU memory.
#pragma once
#include <string>
#include <vector>

namespace skein::comm {

struct UcxFacts {
  std::string version;
  std::vector<std::string> resources;  // "tcp/eth0", "posix/memory", ...
  std::string trouble;                 // why it can receive no messages; empty: it can
  bool moves_cuda = false;             // it moves data from and to a GPU's memory
};
// Opens the library and starts a worker. Throws Error if the library cannot be opened.
UcxFacts look_at_ucx();
// Why UCX cannot move a GPU's memory here, and what to do about it; empty: it can. Never throws.
std::string ucx_cuda_trouble();

}  // namespace skein::comm
