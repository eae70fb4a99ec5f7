// The choice of instruction sets: every wish on every kind of processor.
#include "engine/device/processor.h"

#include <gtest/gtest.h>

#include "engine/base.h"

namespace skein {
namespace {

constexpr Isa kAll[] = {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx};

TEST(Processor, GetsWhatIsWishedWhereItHasIt) {
  for (const Isa widest : kAll)
    for (const Isa wish : kAll) {
      if (wish <= widest)
        EXPECT_EQ(choose_isa(name_of(wish), {widest}), wish);
      else
        EXPECT_THROW(choose_isa(name_of(wish), {widest}), BadOption);
    }
}

TEST(Processor, UsesItsWidestWithoutAWish) {
  for (const Isa widest : kAll) EXPECT_EQ(choose_isa("", {widest}), widest);
  EXPECT_LE(chosen_isa(), this_processor().widest);
}

TEST(Processor, DoesNotUseSlowPairsUnlessTheyAreWished) {
  constexpr Processor kSlow = {Isa::kAvx512Bf16, true}, kTiles = {Isa::kAmx, true};
  EXPECT_EQ(choose_isa("", kSlow), Isa::kAvx512);
  EXPECT_EQ(choose_isa("avx512bf16", kSlow), Isa::kAvx512Bf16);
  EXPECT_EQ(choose_isa("", kTiles), Isa::kAmx);
}

TEST(Processor, LackingWhatIsWishedNamesBoth) {
  try {
    choose_isa("amx", {Isa::kAvx512});
    FAIL();
  } catch (const BadOption& e) {
    EXPECT_NE(std::string(e.what()).find("SKEIN_CPU=amx"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("avx512"), std::string::npos) << e.what();
  }
}

TEST(Processor, AWordThatIsNoNameIsRefusedEverywhere) {
  for (const char* word : {"AVX2", "avx", "avx512 ", "sse", "0"})
    EXPECT_THROW(choose_isa(word, {Isa::kAmx}), BadOption) << word;
}

}  // namespace
}  // namespace skein
