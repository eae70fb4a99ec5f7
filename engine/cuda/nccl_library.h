// NCCL's functions, looked up when first needed, and its results as exceptions.
#pragma once
#include <nccl.h>

#include "engine/cuda/library.h"

namespace skein::cuda {

// clang-format off
#define SKEIN_NCCL_FUNCTIONS(ROW) \
  ROW(ncclGetVersion) \
  ROW(ncclGetErrorString) \
  ROW(ncclGetLastError) \
  ROW(ncclGetUniqueId) \
  ROW(ncclCommInitRankConfig) \
  ROW(ncclCommFinalize) \
  ROW(ncclCommAbort) \
  ROW(ncclCommDestroy) \
  ROW(ncclCommGetAsyncError) \
  ROW(ncclAllReduce) \
  ROW(ncclBroadcast)
// clang-format on

struct Nccl {
  SKEIN_NCCL_FUNCTIONS(SKEIN_MEMBER)
};
// Opens the library once. Throws Error that says what to install.
const Nccl& nccl();
// Throws Error with NCCL's own words if the result is a failure; work in progress is not one.
void check(ncclResult_t, const char* what, const Nccl& = nccl());

}  // namespace skein::cuda
