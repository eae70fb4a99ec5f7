// Asks the CUDA runtime where an address lies.
#include "engine/cuda/foreign.h"

#include "engine/cuda/status.h"

namespace skein::cuda {

int device_of_foreign(const void* p) {
  cudaPointerAttributes a{};
  check(cudaPointerGetAttributes(&a, p), "cudaPointerGetAttributes");
  if (a.type != cudaMemoryTypeDevice && a.type != cudaMemoryTypeManaged)
    throw Error(text("the address ", p, " is not in the memory of a GPU"));
  return a.device;
}

}  // namespace skein::cuda
