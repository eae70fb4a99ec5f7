// Philox against the published vectors, and the properties of draws.
#include <set>

#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

std::vector<uint32_t> words(const Philox4& p) { return {p.v[0], p.v[1], p.v[2], p.v[3]}; }

TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(words(philox(0, 0, 0)), (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words(philox(~0ull, ~0ull, ~0ull)),
            (std::vector<uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e)),
            (std::vector<uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Draw, DependsOnEachOfItsParts) {
  std::set<uint32_t> seen;
  const Draw base{1, Purpose::kOrder, 2, 3};
  std::vector<Draw> draws(5, base);
  draws[1].seed = 2;
  draws[2].purpose = Purpose::kAugment;
  draws[3].step = 3;
  draws[4].lane = 4;
  for (const Draw& d : draws)
    for (uint64_t i = 0; i < 100; ++i) seen.insert(d.bits(i));
  EXPECT_EQ(seen.size(), 500u);
  EXPECT_EQ(base.bits(7), base.block(1).v[3]);
}

TEST(Draw, UnitStaysBelowOne) {
  EXPECT_LT(unit_float(~0u), 1.f);
  EXPECT_EQ(unit_float(0), 0.f);
}

class Random : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Random, kDevices, device_name);

TEST_P(Random, UniformIsTheDrawElementByElement) {
  Tensor x({50001}, kF32, GetParam());
  fill_uniform(x, draw(3), -2, 5);
  std::vector<double> want;
  for (uint64_t i = 0; i < 50001; ++i) want.push_back(-2 + 7 * double(draw(3).unit(i)));
  EXPECT_TRUE(allclose(x, want));
}

TEST_P(Random, NormalHasItsMoments) {
  Tensor x({200001}, kF32, GetParam());
  fill_normal(x, draw(4), 1, 2);
  double m1 = 0, m2 = 0, m4 = 0;
  const std::vector<double> v = values(x);
  for (const double y : v) m1 += y;
  m1 /= double(v.size());
  for (const double y : v) m2 += (y - m1) * (y - m1), m4 += std::pow(y - m1, 4);
  m2 /= double(v.size()), m4 /= double(v.size());
  EXPECT_NEAR(m1, 1, 0.02);
  EXPECT_NEAR(m2, 4, 0.06);
  EXPECT_NEAR(m4 / (m2 * m2), 3, 0.08);
}

TEST(RandomScope, HandsOutLanesAndNests) {
  EXPECT_THROW(RandomScope::next_draw(), Error);
  RandomScope outer(1, 10, 0);
  const Draw a = RandomScope::next_draw();
  {
    RandomScope inner(1, 10, 1);
    EXPECT_NE(RandomScope::next_draw().bits(0), a.bits(0));
  }
  const Draw b = RandomScope::next_draw();
  EXPECT_NE(a.bits(0), b.bits(0));
  RandomScope again(1, 10, 0);
  EXPECT_EQ(RandomScope::next_draw().bits(0), a.bits(0));
}

}  // namespace
}  // namespace skein
