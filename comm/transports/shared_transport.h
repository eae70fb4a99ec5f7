// Shared transport: ranks as processes of one host. A message is an entry in a ring; its payload is read
// where it lies.
#pragma once
#include <memory>
#include <mutex>

#include "comm/join/liveness.h"
#include "comm/transport.h"
#include "comm/transports/arena.h"

namespace skein::comm {

// The part of a process's transport that reaches the ranks of its own host. Every rank has an Arena that the
// others map. It begins with a control block: a bell (futex), one ring of incoming messages per sender, and
// per receiver a table in which it marks the payloads that it has finished with.
class SharedEndpoints final : public SharedMemory {
 public:
  // Collective over `exchange`: every rank calls it, also one that is alone on its host. `domains`: each
  // rank's, which are equal on one host. Connections made are handed to `live`.
  SharedEndpoints(Exchange& exchange, const std::vector<int>& domains, Mailbox&, Liveness& live,
                  const TransportOptions&);
  ~SharedEndpoints() override;

  Endpoint& to(Rank);
  int domain(Rank r) const override { return domains_[size_t(r)]; }
  Allocator& allocator() override { return *arena_; }
  std::optional<int64_t> offset_of(const Tensor&) const override;
  Tensor window(Rank peer, int64_t offset, int64_t elements, DType) const override;
  // Moves arrivals into the mailbox as far as it has room. For any thread.
  void progress();
  // Yields for a short time, then sleeps, until a message of this key is there, the bell rings, or `until`.
  void nap(const Key&, Clock::time_point until);
  void wake();  // ends all naps

  struct Control;

 private:
  class Peer;
  void drain(Rank from);
  Mailbox& box_;
  Liveness& live_;
  const int64_t in_flight_;
  const std::vector<int> domains_;
  struct Retires {
    void operator()(Arena* a) const { a->retire(); }
  };
  std::unique_ptr<Arena, Retires> arena_;  // not deleted: tensors made from it may live longer
  Control* control_;
  std::vector<std::unique_ptr<Peer>> peers_;            // by rank; null for ranks of other hosts
  std::mutex mutex_;                                    // guards what drain() touches
  std::vector<std::pair<Rank, std::string>> refusals_;  // to be sent while no lock is held
};

}  // namespace skein::comm
