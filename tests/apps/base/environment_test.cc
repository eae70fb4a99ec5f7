// Environment variables: an empty one is none, and a number is whole or refused by name.
#include "apps/base/environment.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/support/files.h"

namespace skein::apps {
namespace {

constexpr const char* kName = "SKEIN_TEST_VARIABLE";

struct Environment : ::testing::Test {
  ~Environment() override { unsetenv(kName); }
  static void set(const std::string& value) { setenv(kName, value.c_str(), 1); }
};

TEST_F(Environment, AnEmptyVariableIsNone) {
  EXPECT_FALSE(variable(kName) || number(kName));
  set("");
  EXPECT_FALSE(variable(kName) || number(kName));
  set(" x ");
  EXPECT_EQ(variable(kName), " x ");
}

TEST_F(Environment, NumbersAreWholeAndNotNegative) {
  for (const int n : {0, 12, 2147483647}) {
    set(std::to_string(n));
    EXPECT_EQ(number(kName), n);
  }
  for (const char* bad : {"-1", "1x", "x", "1.5", " 1", "+1", "2147483648"}) {
    set(bad);
    const std::string said = testing::message_of<BadOption>([] { number(kName); });
    EXPECT_TRUE(testing::has(said, text(kName, '=', bad, ": a whole number is needed"))) << said;
  }
}

}  // namespace
}  // namespace skein::apps
