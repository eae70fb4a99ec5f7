// Codecs: what comes back, what stays, and the bits that travel.
#include "engine/vectors/codec.h"

#include <limits>

#include "engine/vectors/vec.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

class CodecOn : public OnDevice {
 protected:
  // Sizes that end within a pair, a block and a chunk.
  static constexpr int64_t kSizes[] = {1, 2, 255, 256, 257, 4095, 4096, 4097, 40001};
  Tensor random(int64_t n, uint64_t seed) const {
    return random_uniform({n}, seed, -1, 1, kF32).to(GetParam());
  }
  Tensor zeros(int64_t n) const { return Tensor::zeros({n}, kF32, GetParam()); }
  Tensor blank(const Codec& c, int64_t n) const { return Tensor({c.bytes(n)}, kU8, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, CodecOn, kDevices, device_name);

const Codec kAll[] = {{Codec::kInt8}, {Codec::kInt4}, {Codec::kTopK, 0.01}, {Codec::kTopK, 1}};

// What is said and what stays are what there was; and the ways to read the codes agree.
TEST_P(CodecOn, NothingIsLost) {
  for (const Codec& c : kAll)
    for (const int64_t n : kSizes) {
      const Tensor x = random(n, 1), e = random(n, 2), was = e.clone(), codes = blank(c, n), said = zeros(n);
      scale(e, 0.01f), scale(was, 0.01f);
      encode(c, codes, x, e, said);
      const Tensor read = zeros(n), added = x.clone();
      decode(c, read, codes);
      decode_add(c, added, codes);
      EXPECT_EQ(values(read), values(said)) << int(c.kind) << ' ' << n;
      const std::vector<double> v = values(x), before = values(was), after = values(e), s = values(said),
                                a = values(added);
      for (size_t i = 0; i < v.size(); ++i) {
        ASSERT_EQ(float(v[i]) + float(before[i]) - float(s[i]), float(after[i]))
            << int(c.kind) << ' ' << n << ' ' << i;
        ASSERT_EQ(float(v[i]) + float(s[i]), float(a[i])) << int(c.kind) << ' ' << n << ' ' << i;
      }
    }
}

// The sum over the steps of what was meant and not said is the residual, to an ulp a step.
TEST_P(CodecOn, TheResidualIsWhatManyStepsHaveNotSaid) {
  constexpr int64_t kN = 5000, kSteps = 50;
  for (const Codec& c : kAll) {
    const Tensor e = zeros(kN), said = zeros(kN), codes = blank(c, kN);
    std::vector<double> owed(size_t(kN), 0.0);
    for (int64_t k = 0; k < kSteps; ++k) {
      const Tensor x = random(kN, uint64_t(10 + k));
      encode(c, codes, x, e, said);
      const std::vector<double> meant = values(x), heard = values(said);
      for (size_t i = 0; i < owed.size(); ++i) owed[i] += meant[i] - heard[i];
    }
    const std::vector<double> left = values(e);
    const double most = *std::max_element(left.begin(), left.end());
    for (size_t i = 0; i < owed.size(); ++i)
      ASSERT_NEAR(owed[i], left[i], kSteps * 6e-8 * (2 + most)) << int(c.kind) << ' ' << i;
  }
}

TEST_P(CodecOn, NumbersOnTheGridComeBackExactly) {
  for (const auto& [c, most] : {std::pair(Codec{Codec::kInt8}, 127), {Codec{Codec::kInt4}, 7}}) {
    std::vector<float> grid;
    for (int64_t i = 0; i < 1000; ++i)
      grid.push_back(0.03125f * float(i % 256 == 0 ? most : i % (2 * most + 1) - most));
    const Tensor x = Tensor::of<float>({1000}, grid).to(GetParam()), e = zeros(1000), said = zeros(1000),
                 codes = blank(c, 1000);
    encode(c, codes, x, e, said);
    EXPECT_EQ(values(said), values(x));
    EXPECT_EQ(norm(e), 0);
  }
}

// Ties to even: halves of the grid's step go to the even neighbor.
TEST_P(CodecOn, RoundsToTheNearestOfEachBlock) {
  const Tensor x = Tensor::of<float>({6}, {127, 0.5f, 1.5f, -0.5f, -2.5f, 3.4f}).to(GetParam()), e = zeros(6),
               said = zeros(6), codes = blank({Codec::kInt8}, 6);
  encode({Codec::kInt8}, codes, x, e, said);
  EXPECT_EQ(values(said), (std::vector<double>{127, 0, 2, 0, -2, 3}));
}

TEST_P(CodecOn, TheLargestTravelAndOfEqualOnesTheFirst) {
  const Codec c{Codec::kTopK, 0.25};
  const Tensor x = Tensor::of<float>({12}, {1, -5, 2, 2, 0, -2, 2, 1, 1, 1, 1, -2}).to(GetParam()),
               e = zeros(12), said = zeros(12), codes = blank(c, 12);
  EXPECT_EQ(codes.size(), 12);
  encode(c, codes, x, e, said);
  EXPECT_EQ(values(said), (std::vector<double>{0, -5, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(values(e), (std::vector<double>{1, 0, 0, 0, 0, -2, 2, 1, 1, 1, 1, -2}));
}

TEST_P(CodecOn, WhatTravelsCanBeCounted) {
  const Codec c{Codec::kTopK, 0.25};
  const Tensor x = Tensor::of<float>({8}, {1, -5, 0, 2, 0, 0, 0, 0}).to(GetParam()), zero = zeros(8),
               n = zeros(8), codes = blank(c, 8);
  encode(c, codes, x, zeros(8)), count_sent(c, n, codes);
  encode(c, codes, zero, zeros(8)), count_sent(c, n, codes);  // a zero that travels counts
  EXPECT_EQ(values(n), (std::vector<double>{1, 2, 0, 1, 0, 0, 0, 0}));
}

TEST_P(CodecOn, MeansCanBeOfThoseWhoSent) {
  const Tensor y = Tensor::of<float>({4}, {6, 6, 6, 0}).to(GetParam()),
               n = Tensor::of<float>({4}, {3, 1, 2, 0}).to(GetParam());
  divide_by_counts(y, n);
  EXPECT_EQ(values(y), (std::vector<double>{2, 6, 3, 0}));
}

// With all of them, and numbers that bf16 holds, it is no codec at all.
TEST_P(CodecOn, TheWholeOfAllNumbersIsExact) {
  const Codec c{Codec::kTopK, 1};
  const Tensor low = random_uniform({9000}, 3, -1, 1, kBF16).to(GetParam()), x = zeros(9000), e = zeros(9000),
               said = zeros(9000), codes = blank(c, 9000);
  copy(x, low);
  encode(c, codes, x, e, said);
  EXPECT_EQ(values(said), values(x));
}

TEST_P(CodecOn, EveryDeviceMakesTheSameCodes) {
  for (const Codec& c : kAll) {
    const Tensor x = random(40001, 5), e = zeros(40001), codes = blank(c, 40001);
    const Tensor near = x.to(kCpu).clone(), left = Tensor::zeros({40001}), same({codes.size()}, kU8);
    encode(c, codes, x, e);
    encode(c, same, near, left);
    const Tensor back = codes.to(kCpu);
    if (GetParam().is_cuda()) current_stream(GetParam()).sync();
    EXPECT_EQ(0, std::memcmp(back.raw(), same.raw(), size_t(same.size()))) << int(c.kind);
  }
}

// An infinity or NaN is seen by all that read the codes, and does not stay.
TEST_P(CodecOn, WhatIsNotFiniteIsSaidAndForgotten) {
  for (const Codec& c : kAll)
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      const Tensor host = random_uniform({600}, 1);
      host.data<float>()[300] = bad;
      const Tensor x = host.to(GetParam()), e = zeros(600), said = zeros(600), codes = blank(c, 600);
      encode(c, codes, x, e, said);
      EXPECT_FALSE(all_finite(said)) << int(c.kind);
      EXPECT_TRUE(all_finite(e)) << int(c.kind);
    }
}

TEST_P(CodecOn, TinyNumbersWaitUntilTheyCanBeSaid) {
  for (const Codec& c : {kAll[0], kAll[1]}) {
    const Tensor x = zeros(256), e = zeros(256), said = zeros(256), codes = blank(c, 256);
    fill(x, 1e-40f);
    encode(c, codes, x, e, said);
    EXPECT_TRUE(all_finite(said));
    for (const double left : values(e)) EXPECT_GE(left, 0);
  }
}

// Bytes per number: 4 and 7.75 times fewer than f32, and 100 times.
TEST(Codec, SizesAreThoseOfBlocksAndChunks) {
  EXPECT_EQ(Codec{Codec::kInt8}.bytes(25600), 26000);
  EXPECT_EQ(Codec{Codec::kInt4}.bytes(25600), 13200);
  EXPECT_EQ(Codec{Codec::kInt4}.bytes(3), 6);
  EXPECT_EQ((Codec{Codec::kTopK, 0.01}).bytes(40960), 4 * 410);
  EXPECT_EQ((Codec{Codec::kTopK, 0.01}).bytes(4096 + 50), 4 * 42);
  EXPECT_EQ(Codec{}.bytes(10), 40);
}

TEST(Codec, WordsAreRead) {
  EXPECT_EQ(parse_codec("int8"), Codec{Codec::kInt8});
  EXPECT_EQ(parse_codec("topk:0.02"), (Codec{Codec::kTopK, 0.02}));
  EXPECT_FALSE(parse_codec("fp32"));
  for (const char* bad : {"topk:0", "topk:2", "topk:", "topk:x"})
    EXPECT_THROW(parse_codec(bad), BadOption) << bad;
}

}  // namespace
}  // namespace skein
