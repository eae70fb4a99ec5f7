// NCCL by dlopen.
#include "engine/cuda/nccl_library.h"

namespace skein::cuda {
namespace {

constexpr const char* kName = "NCCL";

Nccl open() {
  void* library = open_library(kName, "libnccl.so.2", "libnccl2");
  Nccl n;
#define ROW(name) n.name = reinterpret_cast<decltype(n.name)>(find_function(library, kName, #name, "2.18"));
  SKEIN_NCCL_FUNCTIONS(ROW)
#undef ROW
  return n;
}

}  // namespace

const Nccl& nccl() {
  static const Nccl n = open();
  return n;
}

void check(ncclResult_t result, const char* what, const Nccl& by) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* more = by.ncclGetLastError(nullptr);
  throw Error(text("NCCL: ", what, " failed: ", by.ncclGetErrorString(result), more && *more ? ": " : "",
                   more ? more : ""));
}

}  // namespace skein::cuda
