// What workers and the servers of leases say to each other, as numbers in messages and datagrams.
#pragma once
#include "comm/inbox/inbox.h"
#include "comm/transport.h"
#include "optim/leaders/lease.h"

namespace skein::optim::lease {

// To a group's server, from its workers or from the global server; to a worker. Each client has one question
// open, numbered by the step of its message or the sequence of its datagram, and the answer has its number.
inline constexpr comm::Tag kToGroup = 11, kToWorker = 12, kStanding = 13;
inline constexpr uint16_t kIdle = 1, kWants = 2, kAgain = 4;  // a datagram's kind is a sum of these

inline Tensor pack(const Word& w) { return Tensor::of<int64_t>({4}, {w.idle, w.wants, w.returned, w.again}); }
inline Tensor pack(const Standing& s) { return Tensor::of<int64_t>({3}, {s.left, s.rounds, s.heard}); }
inline Tensor pack(const Answer& a) {
  const Standing& s = a.standing;
  return Tensor::of<int64_t>({5}, {int64_t(a.next), a.steps, s.left, s.rounds, s.heard});
}
// The n numbers of a message; throws Disagreement if it has others.
inline const int64_t* numbers_in(const comm::Message& m, int64_t n) {
  if (m.payload.dtype() != kI64 || m.payload.size() != n)
    throw comm::Disagreement(text("rank ", m.from, " sent ", m.payload.size(), " numbers of ",
                                  m.payload.dtype(), " about leases, ", n,
                                  " of i64 were due; do all run the same version?"));
  return m.payload.data<int64_t>();
}
inline bool is_answer(const comm::Message& m) { return m.payload.size() == 5; }
inline Word word_of(const comm::Message& m) {
  const int64_t* const v = numbers_in(m, 4);
  return {v[0] != 0, v[1] != 0, v[2], v[3] != 0};
}
inline Word word_of(const comm::Request& r) {
  return {(r.kind & kIdle) != 0, (r.kind & kWants) != 0, r.argument, (r.kind & kAgain) != 0};
}
inline uint16_t kind_of(const Word& w) {
  return uint16_t((w.idle ? kIdle : 0) | (w.wants ? kWants : 0) | (w.again ? kAgain : 0));
}
inline Answer answer_of(const comm::Message& m) {
  const int64_t* const v = numbers_in(m, 5);
  if (v[0] < 0 || v[0] > int64_t(Next::kMet))
    throw comm::Disagreement(text("rank ", m.from, " sent the unknown answer ", v[0], " about leases"));
  return {Next(v[0]), v[1], {v[2], v[3], v[4]}};
}
inline Standing standing_of(const comm::Message& m) {
  const int64_t* const v = numbers_in(m, 3);
  return {v[0], v[1], v[2]};
}

}  // namespace skein::optim::lease
