// A step of its own for each exchange, so that messages which come early wait for theirs.
#include "comm/average/ring_exchange.h"

#include <algorithm>

#include <algorithm>

#include "comm/communicator/words.h"

namespace skein::comm {
namespace {

constexpr Tag kAround = 3;

}  // namespace

RingExchange::RingExchange(Communicator& c, Rank reach, int64_t bytes)
    : comm_(c), payload_(Tensor::zeros({bytes / 4})) {
  CHECK(bytes > 0 && bytes % 4 == 0 && reach > 0 && c.size() > 1, bytes, reach, c.size());
  const Rank n = c.size();
  for (Rank d = 1; d <= std::min(reach, n / 2); ++d) {
    neighbors_.push_back((c.rank() + d) % n);
    if (2 * d != n) neighbors_.push_back((c.rank() + n - d) % n);
  }
}

void RingExchange::send() {
  for (const Rank r : neighbors_) comm_.push(r, kAround, sent_, 1, payload_);
  ++sent_;
}

void RingExchange::receive() {
  for (const Rank r : neighbors_) comm_.take(r, kAround, received_, payload_);
  ++received_;
}

double seconds_of_exchange(Communicator& c, Rank reach, int64_t bytes, int repeats) {
  CHECK(repeats > 0, repeats);
  RingExchange ring(c, reach, bytes);
  Clock::time_point began;
  for (int i = 0; i <= repeats; ++i) {
    ring.send();
    ring.receive();
    if (i == 0) began = Clock::now();
  }
  double longest = 0;
  for (const auto& one : gather_numbers(c, {seconds_since(began) / repeats}))
    longest = std::max(longest, one[0]);
  return longest;
}

}  // namespace skein::comm
