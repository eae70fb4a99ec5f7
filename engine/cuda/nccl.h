// Collectives between GPUs through NCCL, without its headers.
#pragma once
#include <array>
#include <functional>
#include <mutex>

#include "engine/device/device_group.h"

struct ncclComm;

namespace skein::cuda {

struct Nccl;         // NCCL's functions (nccl_library.h)
const Nccl& nccl();  // those of the library

using NcclId = std::array<char, 128>;
NcclId new_nccl_id(const Nccl& = nccl());
// Groups that these functions form; nccl_groups() are those of the library.
DeviceGroups groups_by(const Nccl&);

// Takes any element type. NCCL refuses two members on one GPU unless their NCCL_HOSTID differ. The device is
// a GPU, unless the functions are not the library's.
class NcclGroup final : public DeviceGroup {
 public:
  // Waits up to `deadline` seconds until all `size` members have come. The same limit holds for later waits:
  // for a call's work to be queued, and for the others at the end.
  NcclGroup(const NcclId&, int rank, int size, Device, double deadline = 60, const Nccl& = nccl());
  ~NcclGroup() override;
  int rank() const { return rank_; }
  int size() const { return size_; }
  Device device() const override { return device_; }
  void all_reduce(const Tensor& x, Stream&) override;
  void broadcast(const Tensor& x, int root, Stream&) override;
  void check_health() const override;
  void abort() noexcept override;

 private:
  // Calls f(group), which returns a status of NCCL's, and waits until its work is no longer in progress.
  void call(const char* what, double patience, const std::function<int(ncclComm*)>& f);
  void settle(const char* what, double patience) const;
  bool in_progress(const char* what) const;
  const Nccl& nccl_;
  const Device device_;
  const int rank_, size_;
  const double deadline_;
  const int exceptions_;       // in flight when the group was formed
  mutable std::mutex mutex_;   // for `group_`, and while NCCL uses it
  ncclComm* group_ = nullptr;  // null once ended
};

}  // namespace skein::cuda
