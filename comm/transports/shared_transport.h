// Shared transport: ranks as processes of one host. A message is an entry in a ring, its payload is read in
// place.
#pragma once
#include <memory>
#include <mutex>

#include "comm/join/liveness.h"
#include "comm/transport.h"
#include "comm/transports/arena.h"

namespace skein::comm {

// The part of a process's transport that reaches the ranks of its own host. Every rank has an Arena that the
// others map; it begins with a control block: a bell (futex), one ring of incoming messages per sender, and
// per receiver a table in which that one ticks off the payloads it has finished with.
class SharedDoors {
 public:
  // Collective over `exchange`: every rank calls it, also one that is alone on its host (`near` empty).
  // `near`: the other ranks of this host. Connections made are handed to `live`.
  SharedDoors(Exchange& exchange, const std::vector<Rank>& near, Mailbox&, Liveness& live,
              const TransportOptions&);
  ~SharedDoors();

  Endpoint& to(Rank);
  Allocator& allocator() { return *arena_; }
  // Moves arrivals into the mailbox as far as it has room. Any thread.
  void progress();
  // Yields for a little, then sleeps, until a message of this key is there, the bell rings, or `until`.
  void nap(const Key&, Clock::time_point until);
  void wake();  // ends all naps
  std::optional<int64_t> place_of(const Tensor&) const;
  Tensor window(Rank peer, int64_t place, int64_t elements, DType) const;
  int64_t strangers() const { return strangers_; }

  struct Control;

 private:
  class Door;
  void drain(Rank from);
  Mailbox& box_;
  Liveness& live_;
  const int64_t in_flight_;
  Arena* arena_;  // retired, not deleted: tensors made from it may live longer
  Control* control_;
  std::vector<std::unique_ptr<Door>> doors_;            // by rank; null for who is not near
  std::mutex mutex_;                                    // of what drain() touches
  std::vector<std::pair<Rank, std::string>> refusals_;  // to be sent when no lock is held
  int64_t strangers_ = 0;
};

}  // namespace skein::comm
