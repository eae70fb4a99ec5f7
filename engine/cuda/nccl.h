// The four collectives between GPUs through NCCL, without its headers.
#pragma once
#include <array>
#include <atomic>
#include <memory>

#include "engine/device_group.h"

struct ncclComm;

namespace skein::cuda {

using NcclId = std::array<char, 128>;
NcclId new_nccl_id();

// Any element type. NCCL refuses two members on one GPU unless their NCCL_HOSTID differ. The device is a GPU,
// but for tests that put functions of their own in NCCL's place.
class NcclGroup final : public DeviceGroup {
 public:
  // Waits until all `size` members have come, then for at most `deadline` seconds more.
  NcclGroup(const NcclId&, int rank, int size, Device, double deadline = 60);
  ~NcclGroup() override { abort(); }
  int rank() const { return rank_; }
  int size() const { return size_; }
  Device device() const override { return device_; }
  void all_reduce(const Tensor& x, Stream&) override;
  void broadcast(const Tensor& x, int root, Stream&) override;
  void reduce_scatter(const Tensor& part, const Tensor& x, Stream&) override;
  void all_gather(const Tensor& x, const Tensor& part, Stream&) override;
  void check_health() const override;
  void abort() noexcept override;

 private:
  ncclComm* ready(const Tensor&) const;  // the group, after looking whether it can work on this tensor
  const Device device_;
  const int rank_, size_;
  std::atomic<ncclComm*> group_{nullptr};  // null: ended
};

}  // namespace skein::cuda
