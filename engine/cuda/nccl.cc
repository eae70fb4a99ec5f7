// Collectives through NCCL. No member blocks forever, neither while the group is formed nor in calls.
#include "engine/cuda/nccl.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

#include "engine/cuda/nccl_library.h"
#include "engine/cuda/runtime.h"
#include "engine/tensor.h"

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

NcclId new_nccl_id(const Nccl& by) {
  ncclUniqueId id;
  static_assert(sizeof id == sizeof(NcclId));
  check(by.ncclGetUniqueId(&id), "ncclGetUniqueId", by);
  NcclId bytes;
  std::memcpy(bytes.data(), &id, sizeof id);
  return bytes;
}

NcclGroup::NcclGroup(const NcclId& bytes, int rank, int size, Device d, double deadline, const Nccl& by)
    : nccl_(by),
      device_(d),
      rank_(rank),
      size_(size),
      deadline_(deadline),
      exceptions_(std::uncaught_exceptions()) {
  CHECK(rank >= 0 && rank < size, rank, size);
  if (d.is_cuda()) make_current(d.index);
  ncclUniqueId id;
  std::memcpy(&id, bytes.data(), sizeof id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // a member that never comes must not block us forever
  try {
    check(nccl_.ncclCommInitRankConfig(&group_, size, id, rank, &config), "ncclCommInitRankConfig", nccl_);
    settle("forming a group", deadline);
  } catch (...) {
    abort();
    throw;
  }
}

// While an exception unwinds, the others may never reach what this member has queued.
NcclGroup::~NcclGroup() {
  try {
    if (group_ && std::uncaught_exceptions() == exceptions_) {
      constexpr double kPatience = 30;  // the others are finishing, too, or they have failed
      call("ending a group", std::min(deadline_, kPatience), nccl_.ncclCommFinalize);
      nccl_.ncclCommDestroy(std::exchange(group_, nullptr));
    }
  } catch (const std::exception&) {  // the group is aborted below
  }
  abort();
}

void NcclGroup::call(const char* what, double patience, const std::function<int(ncclComm*)>& f) {
  try {
    {
      const std::lock_guard lock(mutex_);
      if (!group_) throw Error("NCCL: this group of GPUs was ended after an error");
      if (device_.is_cuda()) make_current(device_.index);
      check(ncclResult_t(f(group_)), what, nccl_);
    }
    settle(what, patience);
  } catch (...) {
    abort();
    throw;
  }
}

// A nonblocking communicator has its own threads, which put a call's work on the stream some time after the
// call has returned. Until then it refuses other calls, and an event would be recorded ahead of the work.
void NcclGroup::settle(const char* what, double patience) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
  while (in_progress(what)) {
    if (std::chrono::steady_clock::now() > end)
      throw Error(text("NCCL: ", what, " took more than ", patience, " s in a group of ", size_,
                       "; were all members started, and is none stopped?"));
    std::this_thread::yield();
  }
}

bool NcclGroup::in_progress(const char* what) const {
  const std::lock_guard lock(mutex_);
  if (!group_) throw Error(text("NCCL: the group was ended during ", what));
  ncclResult_t state = ncclSuccess;
  check(nccl_.ncclCommGetAsyncError(group_, &state), what, nccl_);
  check(state, what, nccl_);
  return state == ncclInProgress;
}

void NcclGroup::check_health() const {
  {
    const std::lock_guard lock(mutex_);
    if (!group_) return;
  }
  in_progress("a collective");
}
void NcclGroup::abort() noexcept {
  const std::lock_guard lock(mutex_);
  if (ncclComm* const group = std::exchange(group_, nullptr)) nccl_.ncclCommAbort(group);
}

namespace {
cudaStream_t raw(Stream& s) { return static_cast<cudaStream_t>(s.handle()); }
}  // namespace

void NcclGroup::all_reduce(const Tensor& x, Stream& s) {
  CHECK(x.device() == device_, x.device(), device_, "in a group of", size_);
  call("ncclAllReduce", deadline_, [&](ncclComm* group) {
    return nccl_.ncclAllReduce(x.raw(), x.raw(), size_t(x.size()), type_of(x.dtype()), ncclSum, group,
                               raw(s));
  });
}
void NcclGroup::broadcast(const Tensor& x, int root, Stream& s) {
  CHECK(x.device() == device_, x.device(), device_, "in a group of", size_);
  call("ncclBroadcast", deadline_, [&](ncclComm* group) {
    return nccl_.ncclBroadcast(x.raw(), x.raw(), size_t(x.size()), type_of(x.dtype()), root, group, raw(s));
  });
}

DeviceGroups groups_by(const Nccl& by) {
  int v = 0;
  check(by.ncclGetVersion(&v), "ncclGetVersion", by);
  return {.name = text("NCCL ", v / 10000, '.', v / 100 % 100, '.', v % 100),
          .new_id =
              [&by] {
                const NcclId id = new_nccl_id(by);
                return std::string(id.data(), id.size());
              },
          .form = [&by](const std::string& id, int rank, int size, Device d,
                        double deadline) -> std::unique_ptr<DeviceGroup> {
            NcclId bytes{};
            CHECK(id.size() == bytes.size(), id.size());
            std::memcpy(bytes.data(), id.data(), id.size());
            return std::make_unique<NcclGroup>(bytes, rank, size, d, deadline, by);
          }};
}

DeviceGroups nccl_groups() { return groups_by(nccl()); }

}  // namespace skein::cuda
