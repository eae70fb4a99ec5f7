// Sums in rank order: one pass over all windows at memory speed, in blocks that fit the first-level cache.
#include "comm/communicator/sum.h"

#include "comm/communicator/team.h"

#include <algorithm>

namespace skein::comm {
namespace {

constexpr int64_t kBlock = 2048;  // elements summed at a time: 8 kB of accumulator
template <class T>
struct SumOf {
  using type = T;
};
template <>
struct SumOf<bf16> {
  using type = float;
};
template <>
struct SumOf<f16> {
  using type = float;
};

// Two and four windows have loops of their own: one pass without an accumulator runs at the speed of memory.
template <class T>
void sum_two(T* x, T* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] = y[i] = T(x[i] + y[i]);
}
template <class T>
void sum_four(T* a, T* b, T* c, T* d, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) a[i] = b[i] = c[i] = d[i] = T(((a[i] + b[i]) + c[i]) + d[i]);
}

template <class T>
void sum_block(T* const* out, size_t outs, T* const* in, size_t ins, int64_t at, int64_t n) {
  using S = typename SumOf<T>::type;
  S s[kBlock];
  for (int64_t i = 0; i < n; ++i) s[i] = S(in[0][at + i]);
  for (size_t r = 1; r < ins; ++r) {
    const T* x = in[r] + at;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) s[i] += S(x[i]);
  }
  for (size_t o = 0; o < outs; ++o) {
    T* y = out[o] + at;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = T(s[i]);
  }
}

template <class T>
void sum_all(const std::vector<Tensor>& out, const std::vector<Tensor>& in) {
  std::vector<T*> to, from;
  for (const Tensor& t : out) to.push_back(t.data<T>());
  for (const Tensor& t : in) from.push_back(t.data<T>());
  const int64_t n = in[0].size(), blocks = (n + kBlock - 1) / kBlock;
  const bool in_place = to == from;
  in_shares(blocks, n >= kTeamFrom, [&](int64_t block, int64_t last) {
    for (; block < last; ++block) {
      const int64_t at = block * kBlock, m = std::min(kBlock, n - at);
      if constexpr (std::is_same_v<T, typename SumOf<T>::type>) {
        if (in_place && to.size() == 2) {
          sum_two(to[0] + at, to[1] + at, m);
          continue;
        }
        if (in_place && to.size() == 4) {
          sum_four(to[0] + at, to[1] + at, to[2] + at, to[3] + at, m);
          continue;
        }
      }
      sum_block(to.data(), to.size(), from.data(), from.size(), at, m);
    }
  });
}

}  // namespace

void sum_in_order(const std::vector<Tensor>& out, const std::vector<Tensor>& in) {
  CHECK(!in.empty() && !out.empty());
  for (const Tensor& t : out)
    CHECK(t.size() == in[0].size() && t.dtype() == in[0].dtype(), t.shape(), t.dtype());
  for (const Tensor& t : in)
    CHECK(t.size() == in[0].size() && t.dtype() == in[0].dtype(), t.shape(), t.dtype());
  switch (in[0].dtype()) {
    case DType::kF32:
      return sum_all<float>(out, in);
    case DType::kBF16:
      return sum_all<bf16>(out, in);
    case DType::kF16:
      return sum_all<f16>(out, in);
    case DType::kI32:
      return sum_all<int32_t>(out, in);
    case DType::kI64:
      return sum_all<int64_t>(out, in);
    case DType::kU8:
      break;
  }
  CHECK(false, "no sums of", in[0].dtype());
}

}  // namespace skein::comm
