// The four collectives between GPUs through NCCL, on tensors and streams, without its headers.
#pragma once
#include <array>
#include <memory>

#include "engine/tensor.h"

namespace skein::cuda {

// Names a group about to be formed: made by one member, brought to the others by what connects them already.
using NcclId = std::array<char, 128>;
NcclId new_nccl_id();

// Members of a group, each with a GPU of its own. All members call the same functions in the same order;
// calls queue work on the calling thread's current stream and return. One thread at a time; any element type.
// Destroying a group ends what is still queued. NCCL refuses two members on one GPU unless their NCCL_HOSTID
// differ.
class NcclGroup {
 public:
  // Waits until all `size` members have come, then for at most `deadline` seconds more.
  NcclGroup(const NcclId&, int rank, int size, Device, double deadline = 60);
  int rank() const { return rank_; }
  int size() const { return size_; }
  void all_reduce(const Tensor& x);                          // x <- the sum of all x
  void broadcast(const Tensor& x, int root);                 // x <- the root's
  void reduce_scatter(const Tensor& part, const Tensor& x);  // part <- this rank's share of the sum of all x
  void all_gather(const Tensor& x, const Tensor& part);      // x <- the parts of all, in rank order
  void check_health() const;                                 // throws Error if a member was lost
  void abort() noexcept;  // ends work that waits for a lost member; the group can then only be destroyed

 private:
  void* stream(const Tensor&) const;
  Device device_;
  int rank_, size_;
  std::shared_ptr<void> group_;
};

}  // namespace skein::cuda
