// Collectives through NCCL: a group that is formed without blocking for ever, and four calls.
#include "engine/cuda/nccl.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "engine/cuda/nccl_library.h"
#include "engine/cuda/runtime.h"

namespace skein::cuda {
namespace {

ncclDataType_t type_of(DType t) {
  switch (t) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kF16:
      return ncclFloat16;
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
  CHECK(rank >= 0 && rank < size, rank, size);
  if (d.is_cuda()) make_current(d.index);
  ncclUniqueId id;
  std::memcpy(&id, bytes.data(), sizeof id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // a member that never comes must not hold us for ever
  ncclComm_t comm = nullptr;
  check(nccl().ncclCommInitRankConfig(&comm, size, id, rank, &config), "ncclCommInitRankConfig");
  group_ = comm;
  try {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(deadline);
    for (ncclResult_t state = ncclInProgress; state == ncclInProgress;) {
      check(nccl().ncclCommGetAsyncError(comm, &state), "forming a group");
      check(state, "forming a group");
      if (state == ncclInProgress && std::chrono::steady_clock::now() > end)
        throw Error(text("NCCL: no group of ", size, " after ", deadline, " s; were all members started?"));
      if (state == ncclInProgress) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } catch (...) {
    abort();
    throw;
  }
}

ncclComm* NcclGroup::ready(const Tensor& x) const {
  ncclComm* const group = group_;
  if (!group) throw Error("NCCL: this group of GPUs was ended after an error");
  CHECK(x.device() == device_, x.device(), device_, "in a group of", size_);
  if (device_.is_cuda()) make_current(device_.index);
  return group;
}

void NcclGroup::check_health() const {
  ncclComm* const group = group_;
  if (!group) return;
  ncclResult_t state = ncclSuccess;
  check(nccl().ncclCommGetAsyncError(group, &state), "a collective");
  check(state, "a collective");
}
void NcclGroup::abort() noexcept {
  if (ncclComm* const group = group_.exchange(nullptr)) nccl().ncclCommAbort(group);
}

namespace {
cudaStream_t raw(Stream& s) { return static_cast<cudaStream_t>(s.handle()); }
}  // namespace

void NcclGroup::all_reduce(const Tensor& x, Stream& s) {
  check(
      nccl().ncclAllReduce(x.raw(), x.raw(), size_t(x.size()), type_of(x.dtype()), ncclSum, ready(x), raw(s)),
      "ncclAllReduce");
}
void NcclGroup::broadcast(const Tensor& x, int root, Stream& s) {
  check(nccl().ncclBroadcast(x.raw(), x.raw(), size_t(x.size()), type_of(x.dtype()), root, ready(x), raw(s)),
        "ncclBroadcast");
}
void NcclGroup::reduce_scatter(const Tensor& part, const Tensor& x, Stream& s) {
  CHECK(x.size() == part.size() * size_ && x.dtype() == part.dtype(), x.shape(), part.shape(), size_);
  check(nccl().ncclReduceScatter(x.raw(), part.raw(), size_t(part.size()), type_of(x.dtype()), ncclSum,
                                 ready(x), raw(s)),
        "ncclReduceScatter");
}
void NcclGroup::all_gather(const Tensor& x, const Tensor& part, Stream& s) {
  CHECK(x.size() == part.size() * size_ && x.dtype() == part.dtype(), x.shape(), part.shape(), size_);
  check(nccl().ncclAllGather(part.raw(), x.raw(), size_t(part.size()), type_of(x.dtype()), ready(x), raw(s)),
        "ncclAllGather");
}

DeviceGroups nccl_groups() {
  int v = 0;
  check(nccl().ncclGetVersion(&v), "ncclGetVersion");
  return {.name = text("NCCL ", v / 10000, '.', v / 100 % 100, '.', v % 100),
          .new_id =
              [] {
                const NcclId id = new_nccl_id();
                return std::string(id.data(), id.size());
              },
          .form = [](const std::string& id, int rank, int size, Device d,
                     double deadline) -> std::unique_ptr<DeviceGroup> {
            NcclId bytes{};
            CHECK(id.size() == bytes.size(), id.size());
            std::memcpy(bytes.data(), id.data(), id.size());
            return std::make_unique<NcclGroup>(bytes, rank, size, d, deadline);
          }};
}

}  // namespace skein::cuda
