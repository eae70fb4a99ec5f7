// What collectives share: the state machine behind a Pending, their tags, and the small messages they send.
#pragma once
#include "comm/communicator/group.h"
#include "comm/communicator/pending.h"

namespace skein::comm {

struct Pending::Op {
  virtual ~Op() = default;
  // Does all that can be done without waiting; sets `done`, or `missing` to a message it lacks.
  virtual void advance() = 0;
  virtual void check_health() const {}  // called while waiting: throws if the collective cannot end
  virtual void give_up() noexcept {}    // a wait for it has failed
  bool done = false;
  Tensor sum;  // to be scaled by `factor` when the collective has been waited for; null: nothing to scale
  double factor = 1;
  Key missing;
  const Event* awaited = nullptr;  // nothing moves before this event of a device
  bool counted = false;            // the meter was on when it began
  // For the meter: its name, when it began (-1: not timed), and when everything it needed had arrived.
  const char* name = "collective";
  double began = -1, landed = 0;
  int64_t bytes = -1;
};

// The first message of every collective has tag kFirst, so that ranks that call different ones notice.
inline constexpr Tag kFirst = kOwnTags, kSecond = kOwnTags + 1, kThird = kOwnTags + 2;
// The purpose of a collective's message, a part of its layout hash.
enum LayoutPurpose : uint32_t {
  kReducePlace = 1,
  kReduceDone,
  kReduceShare,
  kReduceSum,
  kAllGather,
  kBroadcast,
  kGather,
  kBarrier,
  kCodedShare,
  kCodedSum,
};

inline Tensor nothing() { return Tensor({0}, kU8); }

inline std::vector<Share> all_but(Rank me, int n) {
  std::vector<Share> shares;
  for (int d = 1; d < n; ++d) shares.push_back({Rank((me + d) % n), 1, 1});  // not all to rank 0 at once
  return shares;
}

}  // namespace skein::comm
