// What collectives share: the state machine behind a Pending, their tags, and the small messages they send.
#pragma once
#include "comm/communicator/communicator.h"
#include "comm/communicator/staging.h"

namespace skein::comm {

struct Pending::Op {
  virtual ~Op() = default;
  // Does all that can be done without waiting; sets `done`, or `missing` to a message it lacks.
  virtual void advance(Communicator&) = 0;
  virtual void give_up() noexcept {}  // a wait for it has failed
  bool done = false;
  Tensor to_divide;  // of a mean: its sum, until somebody has waited for it
  Key missing;
  const Event* awaited = nullptr;  // of a device: nothing moves before it has happened
  // For the meter: what it is called, when it began (-1: not counted), when all it needed had come and was
  // put to use.
  const char* name = "collective";
  double began = -1, landed = 0;
  int64_t bytes = -1;
};

// The first message of every collective has tag kFirst, so that ranks that call different ones notice.
inline constexpr Tag kFirst = kOwnTags, kSecond = kOwnTags + 1, kThird = kOwnTags + 2,
                     kAverage = kOwnTags + 0x100;
// What a message of a collective is, as a part of its layout hash.
// clang-format off
enum Purpose : uint32_t { kReducePlace = 1, kReduceDone, kReduceShare, kReduceSum, kBroadcast, kGather, kBarrier,
                          kWindows, kAveragePlace, kAverageDone, kAverageVector };
// clang-format on

// Where x lies in memory that others of the host see; -1: nowhere.
inline Tensor place_message(Transport& t, const Tensor& x) {
  return Tensor::of<int64_t>({1}, {t.memory().offset_of(x).value_or(-1)});
}
inline int64_t place_in(const Message& m) { return *m.payload.data<int64_t>(); }
inline Tensor nothing() { return Tensor({0}, kU8); }

inline std::vector<Share> all_but(Rank me, int n) {
  std::vector<Share> shares;
  for (int d = 1; d < n; ++d) shares.push_back({Rank((me + d) % n), 1, 1});  // not all to rank 0 at once
  return shares;
}

}  // namespace skein::comm
