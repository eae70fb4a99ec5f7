// Library handles per thread or device, and scratch memory from the caching allocator.
#include "engine/cuda/handles.h"

#include <map>
#include <mutex>

#include "engine/cuda/cublas_library.h"
#include "engine/cuda/cudnn_library.h"
#include "engine/cuda/runtime.h"
#include "engine/device/memory.h"

namespace skein::cuda {
namespace {

// One thread's cuDNN handles, by device. They are destroyed with the thread, while the
// driver is still loaded.
struct Handles {
  std::map<int, cudnnHandle_t> of;
  ~Handles() {
    for (auto& [index, handle] : of) cudnn().cudnnDestroy(handle);
  }
};

}  // namespace

cudnnContext* cudnn_handle(Device d) {
  thread_local Handles mine;
  void* stream = current_stream(d).handle();
  auto at = mine.of.find(d.index);
  if (at == mine.of.end()) {
    cudnnHandle_t handle = nullptr;
    make_current(d.index);
    check(cudnn().cudnnCreate(&handle), "cudnnCreate");
    at = mine.of.emplace(d.index, handle).first;
  }
  check(cudnn().cudnnSetStream(at->second, static_cast<cudaStream_t>(stream)), "cudnnSetStream");
  return at->second;
}

cublasLtContext* cublas_handle(Device d) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, cublasLtHandle_t>;
  const std::lock_guard lock(mutex);
  auto at = all.find(d.index);
  if (at == all.end()) {
    cublasLtHandle_t handle = nullptr;
    make_current(d.index);
    check(cublas().cublasLtCreate(&handle), "cublasLtCreate");
    at = all.emplace(d.index, handle).first;
  }
  return at->second;
}

Tensor workspace(int64_t bytes, Device d) {
  const MemoryFor what("the workspace of a library's kernel");
  return bytes > 0 ? Tensor({bytes}, kU8, d) : Tensor();
}

std::string libraries() {
  const auto said = [](const char* name, size_t v) {
    return text(name, ' ', v / 10000, '.', v / 100 % 100, '.', v % 100);
  };
  return text(said("cuDNN", cudnn().cudnnGetVersion()), ", ",
              said("cuBLASLt", cublas().cublasLtGetVersion()));
}

}  // namespace skein::cuda
