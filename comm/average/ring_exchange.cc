// A step of its own for each exchange, so that messages which come early wait for theirs.
#include "comm/average/ring_exchange.h"

#include <algorithm>

#include "comm/communicator/words.h"
#include "engine/vectors/vec.h"

namespace skein::comm {
namespace {

constexpr Tag kAround = kRounds | 3;

double longest_of_all(Communicator& c, double mine) {
  double longest = mine;
  for (const auto& one : gather_numbers(c, {mine})) longest = std::max(longest, one[0]);
  return longest;
}

}  // namespace

RingExchange::RingExchange(Communicator& c, int64_t bytes, RingWays ways)
    : comm_(c), payload_(Tensor::zeros({bytes / 4})), sum_(Tensor::zeros({bytes / 4})) {
  CHECK(bytes > 0 && bytes % 4 == 0 && c.size() > 1, bytes, c.size());
  const Rank n = c.size(), next = (c.rank() + 1) % n, last = (c.rank() + n - 1) % n;
  to_ = {next}, from_ = {last};
  if (ways == RingWays::kBoth && n > 2) to_.push_back(last), from_.push_back(next);
}

void RingExchange::send() {
  for (const Rank r : to_) comm_.push(r, kAround, sent_, 1, payload_);
  ++sent_;
}

void RingExchange::receive() {
  for (const Rank r : from_) axpy(sum_, 1.f, comm_.take(r, kAround, received_, payload_).payload);
  ++received_;
}

double seconds_of_exchange(Communicator& c, int64_t bytes, int repeats) {
  CHECK(repeats > 0, repeats);
  RingExchange ring(c, bytes);
  Clock::time_point began;
  for (int i = 0; i <= repeats; ++i) {
    ring.send();
    ring.receive();
    if (i == 0) began = Clock::now();
  }
  return longest_of_all(c, seconds_since(began) / repeats);
}

double seconds_of_sum(Communicator& c, int64_t bytes, int64_t pieces, int repeats, double pause) {
  CHECK(bytes % 4 == 0 && pieces > 0 && repeats > 0 && pause >= 0, bytes, pieces, repeats, pause);
  const int64_t n = bytes / 4;
  const Tensor x = Tensor::zeros({n});
  double taken = 0;
  for (int i = 0; i <= repeats; ++i) {
    nap_until(after(pause));
    c.barrier();
    const auto began = Clock::now();
    Pendings sums;
    for (int64_t p = 0; p < pieces; ++p) {
      const int64_t from = n * p / pieces, to = n * (p + 1) / pieces;
      sums += c.all_reduce(x.view({to - from}, from));
    }
    sums.wait();
    if (i > 0) taken += seconds_since(began);
  }
  return longest_of_all(c, taken / repeats);
}

}  // namespace skein::comm
