// Round trips, pair after pair.
#include "comm/average/link_test.h"

#include <algorithm>

#include "comm/communicator/words.h"

namespace skein::comm {
namespace {

constexpr Tag kThere = 1, kBack = 2;

// The median round trip with `peer`, seconds; the higher rank answers and returns 0.
double round_trip(Communicator& c, Rank peer, const Tensor& x, int repeats, int64_t step) {
  std::vector<double> times;
  for (int i = 0; i <= repeats; ++i, ++step) {
    if (c.rank() > peer) {
      c.push(peer, kBack, step, 1, c.take(peer, kThere, step, x).payload);
      continue;
    }
    const auto began = Clock::now();
    c.push(peer, kThere, step, 1, x);
    c.take(peer, kBack, step, x);
    if (i > 0) times.push_back(seconds_since(began));
  }
  if (times.empty()) return 0;
  std::nth_element(times.begin(), times.begin() + std::ptrdiff_t(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace

std::vector<LinkTimes> test_links(Communicator& c, const LinkTestOptions& o) {
  const size_t n = size_t(c.size()), me = size_t(c.rank());
  std::vector<LinkTimes> all;
  int64_t step = 0;
  for (const int64_t bytes : o.bytes) {
    CHECK(bytes > 0 && bytes % 4 == 0, bytes);
    const Tensor x = Tensor::zeros({bytes / 4});
    LinkTimes t{bytes, bytes <= 4096 ? o.short_repeats : o.repeats, std::vector<double>(n * n, 0.0)};
    std::vector<double> mine(n, 0.0);
    for (size_t a = 0; a < n; ++a)
      for (size_t b = a + 1; b < n; ++b) {
        c.barrier();
        if (me == a || me == b) mine[a + b - me] = round_trip(c, Rank(a + b - me), x, t.repeats, step) / 2;
        step += t.repeats + 1;
      }
    const auto rows = gather_numbers(c, mine);
    for (size_t a = 0; a < n; ++a)
      for (size_t b = a + 1; b < n; ++b) t.seconds[a * n + b] = t.seconds[b * n + a] = rows[a][b];
    all.push_back(std::move(t));
  }
  return all;
}

}  // namespace skein::comm
