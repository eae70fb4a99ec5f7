// Tables of segments on the device, and sums over each segment.
#include "engine/vectors/segments.h"

#include <algorithm>

#include "engine/loops/launch.h"

namespace skein {
namespace {

constexpr int64_t kChunk = 1 << 13;  // elements that one team adds up

template <class T>
Tensor there(const std::vector<T>& values, Device d) {
  return Tensor::of<T>({int64_t(values.size())}, values).to(d);
}

struct ChunkSquares {
  float* sum;
  const float* x;
  const int64_t* chunks;
  template <class Team>
  HD void operator()(int64_t c, Team team) const {
    const int64_t end = chunks[2 * c + 1];
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = chunks[2 * c] + team.lane(); i < end; i += Team::kLanes) s += double(x[i]) * x[i];
    s = team.sum(s);
    if (team.lane() == 0) sum[c] = float(s);
  }
};

struct SegmentTotal {
  float* total;
  const float* sum;
  const int64_t* first;
  template <class Team>
  HD void operator()(int64_t s, Team team) const {
    double t = 0;
    for (int64_t c = first[s] + team.lane(); c < first[s + 1]; c += Team::kLanes) t += sum[c];
    t = team.sum(t);
    if (team.lane() == 0) total[s] = float(t);
  }
};

}  // namespace

Segments::Segments(std::vector<Segment> all, Device d) : all_(std::move(all)) {
  std::vector<int32_t> of_block;
  std::vector<int64_t> chunks, first;
  std::vector<float> rates, decays;
  int64_t at = 0;
  for (const Segment& s : all_) {
    CHECK(s.begin == at && s.end > at && at % kBlock == 0 && s.rows * s.columns <= s.end - s.begin, s.begin,
          s.end, at, s.rows, s.columns);
    of_block.resize(size_t((s.end + kBlock - 1) / kBlock), int32_t(rates.size()));
    first.push_back(int64_t(chunks.size()) / 2);
    for (; at < s.end; at = chunks.back()) chunks.insert(chunks.end(), {at, std::min(at + kChunk, s.end)});
    rates.push_back(s.rate), decays.push_back(s.decay);
  }
  CHECK(!all_.empty(), "a vector without segments");
  first.push_back(int64_t(chunks.size()) / 2);
  of_block_ = there(of_block, d), chunks_ = there(chunks, d), first_ = there(first, d);
  rates_ = there(rates, d), decays_ = there(decays, d);
}

Segments Segments::one(const Tensor& x, float decay) {
  return {{{.end = x.size(), .columns = x.size(), .decay = decay}}, x.device()};
}

Tensor Segments::numbers(const std::vector<float>& of_each) const {
  CHECK(of_each.size() == all_.size(), of_each.size(), all_.size());
  return there(of_each, device());
}

void Segments::sum_squares(const Tensor& sums, const Tensor& x) const {
  CHECK(x.size() == size() && x.device() == device() && sums.size() == int64_t(all_.size()), x.shape(),
        sums.shape(), x.device());
  const int64_t chunks = chunks_.size() / 2;
  const Tensor partial({chunks}, kF32, device());
  for_each_team(device(), chunks, x.size(),
                ChunkSquares{partial.out<float>(), x.in<float>(), chunks_.in<int64_t>()});
  for_each_team(device(), int64_t(all_.size()), chunks,
                SegmentTotal{sums.out<float>(), partial.in<float>(), first_.in<int64_t>()});
}

}  // namespace skein
