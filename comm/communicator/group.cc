// Group: which ranks are members, and which of them are needed.
#include "comm/communicator/group.h"

namespace skein::comm {

Group::Group(Transport& t, CommunicatorOptions o, Members m, uint32_t i, std::shared_ptr<Meter> counts)
    : transport(t),
      options(std::move(o)),
      members(std::move(m)),
      id(i),
      rank(members.place_of(t.rank())),
      shares_memory(members.all_of([&](Rank r) { return t.memory().joins(t.rank(), r); })),
      meter(std::move(counts)) {
  CHECK(options.wire == kF32 || options.wire == kBF16, "payloads travel as f32 or bf16, not", options.wire);
  CHECK(rank < size(), "rank", t.rank(), "is no member of the group");
}

Rank Group::rank_of(Rank world) const { return members.place_of(world); }

Key Group::key(Rank from, Tag tag, int64_t step) const {
  return {id, from == kAnyone ? kAnyone : world_rank(from), tag, step};
}

void Group::require_members() const {
  const Membership& all = mailbox().membership();
  if (!options.all_needed || !all.any_lost()) return;
  for (Rank r : all.dead())
    if (rank_of(r) < size()) all.require(r);
}

}  // namespace skein::comm
