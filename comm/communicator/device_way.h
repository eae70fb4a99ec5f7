// How collectives of tensors on GPUs go: through a group of the GPUs themselves (NCCL), or by way of the
// host.
#pragma once
#include <memory>
#include <string>

#include "comm/communicator/communicator.h"
#include "engine/device/device_group.h"

namespace skein::comm {

enum class DeviceWish : uint8_t { kAuto, kHost, kGroup };

// What a rank brings along when the ranks decide.
struct DeviceOffer {
  Device device;        // where the tensors of its collectives lie
  std::string gpu;      // tells its GPU from all others; empty: it has none
  DeviceGroups groups;  // without `form`: it can join none, and `trouble` says why
  std::string trouble;
  bool repeatable = false;  // sums in rank order, whatever the number of GPUs: the host's
};

// A communicator's way; Communicator::use_devices makes it. Belongs to the communicator's thread.
class DeviceWay {
 public:
  explicit DeviceWay(DeviceOffer o) : offer_(std::move(o)), stream_(urgent_stream(offer_.device)) {}
  // For a communicator over some of the members.
  std::shared_ptr<DeviceWay> anew() const { return std::make_shared<DeviceWay>(offer_); }
  bool takes(const Tensor& x) const { return !forming_ && x.device() == offer_.device && x.size() > 0; }
  // Queues a collective on an urgent stream of its own, behind the calling thread's work so far; returns its end. The
  // first forms the group, which every member must come to.
  Event all_reduce(Communicator&, const Tensor& x);
  Event broadcast(Communicator&, const Tensor& x, Rank root);
  void check_health() const;
  void abort() noexcept;  // after a failed wait: what is queued must end, or the device waits for ever

 private:
  DeviceGroup& group(Communicator&);
  const DeviceOffer offer_;
  Stream stream_;
  bool forming_ = false;
  std::unique_ptr<DeviceGroup> group_;
};

// What the offers of all ranks come to; the same on all, decided by rank 0.
struct DeviceVerdict {
  bool group = false;
  std::string why;      // for the log; empty: nobody has a GPU
  std::string refused;  // a wish that cannot be; then an error
};
DeviceVerdict decide(DeviceWish, const std::vector<DeviceOffer>&);

}  // namespace skein::comm
