// NCCL by dlopen.
#include "engine/cuda/nccl_library.h"

#include <atomic>

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

std::atomic<const Nccl*> other_table{nullptr};

}  // namespace

void stand_in(const Nccl* table) { other_table = table; }

const Nccl& nccl() {
  if (const Nccl* other = other_table) return *other;
  static const Nccl n = open();
  return n;
}

void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* more = nccl().ncclGetLastError(nullptr);
  throw Error(text("NCCL: ", what, " failed: ", nccl().ncclGetErrorString(result), more && *more ? ": " : "",
                   more ? more : ""));
}

}  // namespace skein::cuda
