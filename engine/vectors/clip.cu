// The norm in blocks of fixed size, then one factor, which stays on the device.
#include "engine/vectors/clip.h"

#include <cmath>

#include "engine/loops/launch.h"
#include "engine/vectors/vec.h"

namespace skein {
namespace {

constexpr int64_t kBlock = 1 << 14;

// One partial sum a block.
struct Squares {
  float* sum;
  const float* x;
  int64_t n;
  template <class Team>
  HD void operator()(int64_t b, Team team) const {
    const int64_t end = (b + 1) * kBlock < n ? (b + 1) * kBlock : n;
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = b * kBlock + team.lane(); i < end; i += Team::kLanes) s += double(x[i]) * x[i];
    s = team.sum(s);
    if (team.lane() == 0) sum[b] = float(s);
  }
};

struct Factor {
  float* factor;
  const float* sum;
  int64_t blocks;
  double most;
  template <class Team>
  HD void operator()(int64_t, Team team) const {
    double s = 0;
    for (int64_t b = team.lane(); b < blocks; b += Team::kLanes) s += sum[b];
    s = team.sum(s);
    const double by = most / (sqrt(s) + 1e-6);
    if (team.lane() == 0) factor[0] = by < 1 ? float(by) : by >= 1 ? 1.f : NAN;
  }
};

}  // namespace

void clip_by_norm(const Tensor& g, double most) {
  CHECK(g.dtype() == kF32 && most > 0, g.dtype(), most);
  const int64_t n = g.size(), blocks = (n + kBlock - 1) / kBlock;
  if (n == 0) return;
  const Tensor sums({blocks}, kF32, g.device()), factor({1}, kF32, g.device());
  for_each_team(g.device(), blocks, n, Squares{sums.out<float>(), g.in<float>(), n});
  for_each_team(g.device(), 1, blocks, Factor{factor.out<float>(), sums.in<float>(), blocks, most});
  scale(g, Scalar::at(factor.in<float>()));
}

}  // namespace skein
