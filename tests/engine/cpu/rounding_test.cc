// Kernels of every table that this processor can run round to 16 bits as the scalar types do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/cpu/kernels.h"
#include "engine/cpu/kernels/widths.h"
#include "engine/device/processor.h"

namespace skein::cpu {
namespace {

struct Table {
  const Kernels* kernels;
  bool flushes;  // where the processor rounds to bf16, it takes numbers below 2^-126 for 0
};
std::vector<Table> runnable() {
  std::vector<Table> all{{&kKernels4, false}, {&kKernels8, false}};
#if defined(__x86_64__) && !defined(__clang__)
  if (this_processor().widest >= Isa::kAvx512) all.push_back({&kKernels16, false});
  if (this_processor().widest >= Isa::kAvx512Bf16) {
    static const Kernels rounding = [] {
      Kernels k = kKernels16;
      k.norm[1] = kRounding16.norm, k.finish[1] = kRounding16.finish, k.blend[1] = kRounding16.blend;
      return k;
    }();
    all.push_back({&rounding, true});
  }
#endif
  return all;
}

float of_bits(uint32_t u) {
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

// Both signs of zero, infinity, NaN; the middles between neighbors of 16 bits and what is beside them,
// where 12 to 23 bits are dropped after an even or an odd one; then numbers from all over.
std::vector<float> hard_numbers() {
  std::vector<float> all;
  const auto add = [&](uint32_t u) { all.push_back(of_bits(u)), all.push_back(of_bits(u ^ 1u << 31)); };
  for (const uint32_t u : {0u, 1u, 0x7FFFFFu, 0x7F800000u, 0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu}) add(u);
  for (uint32_t exponent = 0; exponent < 0xFF; ++exponent)
    for (const uint32_t high : {0u, 1u, 0x3Fu, 0x7Eu, 0x7Fu})
      for (int dropped = 12; dropped < 24; ++dropped)
        for (const uint32_t odd : {0u, 1u << dropped})
          for (const uint32_t beside : {~0u, 0u, 1u})
            add((exponent << 23 | ((high << 16 | odd) & 0x7FFFFF)) + (1u << (dropped - 1)) + beside);
  for (uint64_t u = 0; u < 1u << 31; u += 65521 * 13) add(uint32_t(u));
  while (all.size() % 16 != 11) all.push_back(1.f / float(all.size()));  // what follows the last whole vector
  return all;
}

// A NaN stays one, whatever it carries.
template <class T>
void expect_rounded(const T* got, const std::vector<float>& exact, bool flushes, const std::string& what) {
  for (size_t i = 0; i < exact.size(); ++i) {
    const float x = exact[i];
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(float(got[i]))) << what << " of a NaN, the " << i;
    } else if (!flushes || std::abs(x) >= 0x1p-126f || float(got[i]) != 0) {
      ASSERT_EQ(got[i].bits, T(x).bits) << what << " of " << x << ", the " << i;
    }
  }
}

// A number as the sum of two that 16 bits hold, as far as it is.
template <class T>
struct Sums {
  std::vector<T> large, small;
  std::vector<float> exact;
  explicit Sums(const std::vector<float>& x) {
    for (const float v : x) {
      large.push_back(T(v));
      const float rest = v - float(large.back());
      small.push_back(T(std::isfinite(rest) ? rest : 0.f));
      exact.push_back(float(large.back()) + float(small.back()));
    }
  }
};

// Where 64 bytes begin.
template <class T>
T* aligned(std::vector<T>& v) {
  v.resize(v.size() + 64);
  return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(v.data()) + 63) / 64 * 64);
}

template <class T>
void expect_all_round(const Table& table, size_t element) {
  const Kernels& k = *table.kernels;
  const bool flushes = table.flushes && element == 1;
  const std::string which = std::to_string(k.width) + " wide, type " + std::to_string(element) +
                            (table.flushes ? ", rounded by the processor" : "");
  const std::vector<float> x = hard_numbers();
  const int64_t n = int64_t(x.size());
  std::vector<T> memory(x.size());
  T* y = aligned(memory);
  void* out = y;
  k.finish[element]({&out, x.data(), nullptr, 1, n, 0, n, 0, false});
  expect_rounded(y, x, flushes, which + ", finish");

  const Sums<T> sums(x);
  std::copy(sums.small.begin(), sums.small.end(), y);
  k.blend[element](y, sums.large.data(), 1, n);
  expect_rounded(y, sums.exact, flushes, which + ", blend");

  const std::vector<float> zeros(x.size() + 16), ones(x.size() + 16, 1);
  for (const bool past_caches : {false, true}) {
    std::fill_n(y, n, T(9.f));
    NormPass pass{.x = sums.large.data(),
                  .residual = sums.small.data(),
                  .out = y,
                  .mean = zeros.data(),
                  .k = ones.data(),
                  .b = zeros.data(),
                  .low = -INFINITY,
                  .past_caches = past_caches};
    k.norm[element].apply(pass, {0, 1, n, n});
    std::vector<float> exact(x.size());  // of -0 and b = 0 the sum is 0
    for (size_t i = 0; i < exact.size(); ++i) exact[i] = float(sums.large[i]) + 0.f + float(sums.small[i]);
    expect_rounded(y, exact, flushes, which + ", norm");
  }
}

TEST(Rounding, OfEveryTableIsTheScalars) {
  for (const Table& t : runnable()) expect_all_round<bf16>(t, 1), expect_all_round<f16>(t, 2);
}

}  // namespace
}  // namespace skein::cpu
