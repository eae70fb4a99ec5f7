// Matrix products on a GPU against the CPU.
#include <gtest/gtest.h>

#include "tests/cuda/against_cpu.h"

namespace skein {
namespace {
using namespace testing;

class CudaGemm : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, CudaGemm, ::testing::Values(kFirstGpu), device_name);

TEST_P(CudaGemm, GemmAgreesWithTheCpuForEveryTypeAndTransposition) {
  const int64_t sizes[][3] = {{1, 1, 1},     {3, 5, 7},    {17, 1, 33},
                              {64, 10, 128}, {33, 65, 31}, {256, 1000, 2048}};
  for (auto [m, n, k] : sizes)
    for (int bits = 0; bits < 128; ++bits)
      for (DType half : {kBF16, kF16}) {
        if (half == kF16 && bits < 16) continue;
        if (m == 256 && bits >= 16 && bits != 112)
          continue;  // large cases: f32 in every form, 16-bit types in one
        const bool ta = bits & 1, tb = bits & 2, bias = bits & 4, sum = bits & 8;
        const DType ta_ = bits & 16 ? half : kF32, tb_ = bits & 32 ? half : kF32,
                    ty = bits & 64 ? half : kF32;
        GemmArgs a{.y = gaussian({m, n}, ty, 1),
                   .a = gaussian(ta ? Shape{k, m} : Shape{m, k}, ta_, 2),
                   .b = gaussian(tb ? Shape{n, k} : Shape{k, n}, tb_, 3),
                   .ta = ta,
                   .tb = tb,
                   .beta = sum ? 0.5f : 0};
        if (bias) a.bias = gaussian({n}, kF32, 4);
        const GemmArgs b = there(a, GetParam());
        cpu::gemm(a), cuda::gemm(b);
        EXPECT_LT(difference(b.y, a.y), bits < 16 ? 3e-5 : bound(half))
            << half << ' ' << m << ' ' << n << ' ' << k << " bits " << bits;
      }
}

TEST_P(CudaGemm, GemmDoesNotReadTheResultWhenBetaIsZero) {
  GemmArgs a{.y = Tensor({2, 2}), .a = gaussian({2, 3}, kF32, 1), .b = gaussian({3, 2}, kF32, 2)};
  for (int i = 0; i < 4; ++i) a.y.data<float>()[i] = NAN;
  const GemmArgs b = there(a, GetParam());
  cuda::gemm(b);
  for (double v : values(b.y)) EXPECT_TRUE(std::isfinite(v));
}

}  // namespace
}  // namespace skein
