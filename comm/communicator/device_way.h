// How collectives of tensors on GPUs travel: through a group of the GPUs themselves (NCCL), or by way
// of the host.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "comm/communicator/op.h"
#include "engine/device/device_group.h"

namespace skein::comm {

enum class DeviceWish : uint8_t { kAuto, kHost, kGroup };

// What one rank offers when the ranks decide.
struct DeviceOffer {
  Device device;        // where the tensors of its collectives lie
  std::string gpu;      // identifies its GPU; empty: it has none
  DeviceGroups groups;  // without `form` it can join none, and `trouble` says why
  std::string trouble;
  bool repeatable = false;  // it requires sums in rank order, which only the host makes
};

// The group of a communicator's GPUs; Communicator::use_devices makes it. Belongs to
// the communicator's thread.
class DeviceWay : public std::enable_shared_from_this<DeviceWay> {
 public:
  explicit DeviceWay(DeviceOffer o) : offer_(std::move(o)), stream_(urgent_stream(offer_.device)) {}
  // Another one, for a communicator over some of the members.
  std::shared_ptr<DeviceWay> for_group() const { return std::make_shared<DeviceWay>(offer_); }
  bool takes(const Tensor& x) const { return !forming_ && x.device() == offer_.device && x.size() > 0; }
  // Collectives are queued on an urgent stream of its own, behind the calling thread's work so far. The first
  // one forms the group, for which every member must call it.
  std::shared_ptr<Pending::Op> reduction(Communicator&, const Tensor& x);
  // Waits; calls `nap` with the time when it began.
  void broadcast(Communicator&, const Tensor& x, Rank root,
                 const std::function<void(Clock::time_point)>& nap);

 private:
  class Reduction;
  DeviceGroup& group(Communicator&);
  Event queue_sum(Communicator&, const Tensor& x);  // its end
  void check_health() const;
  // After a failed wait: what is queued must end, or the device would never be free again.
  void abort() noexcept;
  const DeviceOffer offer_;
  Stream stream_;
  bool forming_ = false;
  std::unique_ptr<DeviceGroup> group_;
};

// What rank 0 decides on the offers of all ranks.
struct DeviceVerdict {
  bool group = false;
  std::string why;      // for the log; empty: no rank has a GPU
  std::string refused;  // why the wish cannot be granted; empty: it can
};
DeviceVerdict decide(DeviceWish, const std::vector<DeviceOffer>&);
// The verdict's line for the log, and whether the GPUs form a group; the same on all ranks. Collective.
// Throws BadOption, on all ranks, for a wish that cannot be granted.
std::pair<std::string, bool> agree(Communicator&, DeviceWish, const DeviceOffer& mine);

}  // namespace skein::comm
