// Each half is averaged by one of the two, once both have said where their vectors lie.
#include "comm/average/in_place.h"

#include "comm/communicator/team.h"

namespace skein::comm {
namespace {

// a, b <- (a + b) / 2
void average(const Tensor& a, const Tensor& b) {
  float *x = a.data<float>(), *y = b.data<float>();
  const int64_t n = a.size();
  in_shares(n, n >= kTeamFrom, [=](int64_t from, int64_t to) {
#pragma omp simd
    for (int64_t i = from; i < to; ++i) x[i] = y[i] = 0.5f * (x[i] + y[i]);
  });
}

}  // namespace

bool share_memory(const Communicator& c, Rank peer) {
  return c.transport().memory().joins(c.transport().rank(), c.world_rank(peer));
}

void average_in_place(Communicator& c, Rank peer, const Tensor& x, Tag tag, int64_t step) {
  SharedMemory& memory = c.transport().memory();
  const auto mine = memory.offset_of(x);
  CHECK(peer != c.rank() && share_memory(c, peer) && mine, "rank", peer, "does not see this memory");
  CHECK(x.dtype() == kF32, "f32 numbers are averaged in place, not", x.dtype());
  c.push(peer, tag, step, 1, Tensor::of<int64_t>({1}, {*mine}));
  const int64_t offset = *c.take(peer, tag, step, Tensor({1}, kI64)).payload.data<int64_t>();
  const Tensor other = memory.window(c.world_rank(peer), offset, x.size(), kF32);
  const int64_t half = x.size() / 2, lo = c.rank() < peer ? 0 : half,
                n = c.rank() < peer ? half : x.size() - half;
  average(x.view({x.size()}).view({n}, lo), other.view({n}, lo));
  c.meter().moved(2 * n * size_of(kF32));
  c.push(peer, tag + 1, step, 1, Tensor({0}, kU8));
  c.take(peer, tag + 1, step);
  x.storage()->written();  // by the peer, too
}

}  // namespace skein::comm
