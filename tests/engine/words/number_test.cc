// Numbers in texts: the whole text is a number that fits, or there is none.
#include "engine/words/number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace skein {
namespace {

TEST(NumberIn, IsTheWholeTextOrNothing) {
  EXPECT_EQ(number_in<int>("0"), 0);
  EXPECT_EQ(number_in<int>("-17"), -17);
  EXPECT_EQ(number_in<int>("007"), 7);
  EXPECT_EQ(number_in<double>("1e-3"), 1e-3);
  for (const char* bad : {"", " 1", "1 ", "+1", "1x", "x", "0x10", "1.5", "--1"})
    EXPECT_FALSE(number_in<int>(bad)) << bad;
}

TEST(NumberIn, FitsItsType) {
  EXPECT_EQ(number_in<int64_t>("9223372036854775807"), INT64_MAX);
  EXPECT_FALSE(number_in<int64_t>("9223372036854775808"));
  EXPECT_EQ(number_in<uint16_t>("65535"), 65535);
  EXPECT_FALSE(number_in<uint16_t>("65536"));
  EXPECT_FALSE(number_in<uint16_t>("-1"));
  EXPECT_FALSE(number_in<double>("1e999"));
}

}  // namespace
}  // namespace skein
