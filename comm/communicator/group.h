// Group: the members of a communicator, and what its parts have in common.
#pragma once
#include "comm/communicator/communicator.h"
#include "comm/communicator/staging.h"
#include "comm/members.h"

namespace skein::comm {

struct Group {
  Group(Transport&, CommunicatorOptions, Members, uint32_t id, std::shared_ptr<Meter>);
  int size() const { return members.size(); }
  Rank world_rank(Rank r) const { return members.at(r); }
  Rank rank_of(Rank world) const;  // size() if it is no member
  Key key(Rank from, Tag, int64_t step) const;
  Mailbox& mailbox() const { return transport.mailbox(); }
  double now() const { return transport.now(); }
  // Whether what is sent now counts as traffic.
  bool counted() const { return advancing ? *advancing : meter->on(); }
  // If all members are needed and some are lost: throws PeerLost.
  void require_members() const;

  Transport& transport;
  CommunicatorOptions options;
  const Members members;
  const uint32_t id;
  const Rank rank;
  const bool shares_memory;  // every member sees the memory of every other
  const std::shared_ptr<Meter> meter;
  Staging staging;
  std::optional<bool> advancing;  // while a collective is: whether the meter was on when it began
};

}  // namespace skein::comm
