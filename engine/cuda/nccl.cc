// Collectives through NCCL: a group that is formed without blocking for ever, and four calls.
#include "engine/cuda/nccl.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "engine/cuda/nccl_library.h"
#include "engine/cuda/runtime.h"

namespace skein::cuda {
namespace {

ncclComm_t raw(const std::shared_ptr<void>& group) { return static_cast<ncclComm_t>(group.get()); }

ncclDataType_t type_of(DType t) {
  switch (t) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kU8:
      return ncclUint8;
    case DType::kI32:
      return ncclInt32;
    case DType::kI64:
      return ncclInt64;
  }
  return ncclFloat32;
}

}  // namespace

NcclId new_nccl_id() {
  ncclUniqueId id;
  static_assert(sizeof id == sizeof(NcclId));
  check(nccl().ncclGetUniqueId(&id), "ncclGetUniqueId");
  NcclId bytes;
  std::memcpy(bytes.data(), &id, sizeof id);
  return bytes;
}

NcclGroup::NcclGroup(const NcclId& bytes, int rank, int size, Device d, double deadline)
    : device_(d), rank_(rank), size_(size) {
  CHECK(d.is_cuda() && rank >= 0 && rank < size, d, rank, size);
  make_current(d.index);
  ncclUniqueId id;
  std::memcpy(&id, bytes.data(), sizeof id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // a member that never comes must not hold us for ever
  ncclComm_t comm = nullptr;
  check(nccl().ncclCommInitRankConfig(&comm, size, id, rank, &config), "ncclCommInitRankConfig");
  group_ = {comm, [](void* c) { nccl().ncclCommAbort(static_cast<ncclComm_t>(c)); }};
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(deadline);
  for (ncclResult_t state = ncclInProgress; state == ncclInProgress;) {
    check(nccl().ncclCommGetAsyncError(comm, &state), "forming a group");
    check(state, "forming a group");
    if (state == ncclInProgress && std::chrono::steady_clock::now() > end)
      throw Error(text("NCCL: no group of ", size, " after ", deadline, " s; were all members started?"));
    if (state == ncclInProgress) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void* NcclGroup::stream(const Tensor& x) const {
  CHECK(x.device() == device_ && group_, x.device(), device_, "in a group of", size_);
  return current_stream(device_).handle();
}

void NcclGroup::check_health() const {
  ncclResult_t state = ncclSuccess;
  check(nccl().ncclCommGetAsyncError(raw(group_), &state), "a collective");
  check(state, "a collective");
}
void NcclGroup::abort() noexcept { group_.reset(); }

void NcclGroup::all_reduce(const Tensor& x) {
  auto* s = static_cast<cudaStream_t>(stream(x));
  check(nccl().ncclAllReduce(x.raw(), x.raw(), size_t(x.size()), type_of(x.dtype()), ncclSum, raw(group_), s),
        "ncclAllReduce");
}
void NcclGroup::broadcast(const Tensor& x, int root) {
  auto* s = static_cast<cudaStream_t>(stream(x));
  check(nccl().ncclBroadcast(x.raw(), x.raw(), size_t(x.size()), type_of(x.dtype()), root, raw(group_), s),
        "ncclBroadcast");
}
void NcclGroup::reduce_scatter(const Tensor& part, const Tensor& x) {
  CHECK(x.size() == part.size() * size_ && x.dtype() == part.dtype(), x.shape(), part.shape(), size_);
  auto* s = static_cast<cudaStream_t>(stream(x));
  check(nccl().ncclReduceScatter(x.raw(), part.raw(), size_t(part.size()), type_of(x.dtype()), ncclSum,
                                 raw(group_), s),
        "ncclReduceScatter");
}
void NcclGroup::all_gather(const Tensor& x, const Tensor& part) {
  CHECK(x.size() == part.size() * size_ && x.dtype() == part.dtype(), x.shape(), part.shape(), size_);
  auto* s = static_cast<cudaStream_t>(stream(x));
  check(nccl().ncclAllGather(part.raw(), x.raw(), size_t(part.size()), type_of(x.dtype()), raw(group_), s),
        "ncclAllGather");
}

}  // namespace skein::cuda
