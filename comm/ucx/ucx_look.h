// What UCX is here, found out by starting it: for --doctor, and before GPUs' memory is entrusted to it.
#pragma once
#include <string>
#include <vector>

namespace skein::comm {

struct UcxFacts {
  std::string version;
  std::vector<std::string> resources;  // "tcp/eth0", "posix/memory", ...
  std::string trouble;                 // why no messages can be received; empty: they can
  bool moves_cuda = false;             // from and to a GPU's memory
};
// Opens the library and makes what a worker makes. Throws Error if the library cannot be opened.
UcxFacts look_at_ucx();
// Why UCX cannot move a GPU's memory here, and what to do about it; empty: it can. Never throws.
std::string ucx_cuda_trouble();

}  // namespace skein::comm
