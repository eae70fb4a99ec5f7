// How deep JSON and TOML are, judged without recursion.
#include "engine/words/nesting.h"

#include <gtest/gtest.h>

#include "engine/words/json.h"

namespace skein {
namespace {

std::string many(const std::string& s, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += s;
  return all;
}

TEST(Nesting, BracketsAndDottedKeysAreAllowedUpToTheLimit) {
  for (const int n : {kMostLevels, kMostLevels + 2}) {
    const bool deep = n > kMostLevels;
    EXPECT_EQ(nested_too_deeply(many("[", n) + many("]", n)), deep);
    EXPECT_EQ(nested_too_deeply(many("{\"a\":", n) + "1" + many("}", n)), deep);
    EXPECT_EQ(nested_too_deeply("x = " + many("{a=[", n / 2) + many("]}", n / 2)), deep);
    EXPECT_EQ(nested_too_deeply("a" + many(".a", n) + " = 1\n"), deep);
    EXPECT_EQ(nested_too_deeply("[a" + many(".a", n) + "]\n"), deep);
  }
  EXPECT_TRUE(nested_too_deeply(many("[", 3000000)));
  EXPECT_FALSE(nested_too_deeply(many("[]", 1000) + many("x = 0.5\n", 1000) + many("]", 1000)));
}

TEST(Nesting, WhatIsInStringsAndCommentsDoesNotCount) {
  const std::string deep = many("[", 100), three = many("\"", 3), literal = many("'", 3);
  for (const std::string& hidden :
       {"x = \"" + deep + '"', "x = '" + deep + "\\'", "# \"" + deep, "x = \"\\\"" + deep + '"',
        "x = " + three + deep + three, "x = " + literal + "\n'" + deep + literal,
        "x = " + three + "a\"" + deep + three + '"', "x = \"" + many("../", 100) + '"',
        std::string("x = \"\"")}) {
    EXPECT_FALSE(nested_too_deeply(hidden)) << hidden;
    EXPECT_TRUE(nested_too_deeply(hidden + '\n' + deep)) << hidden;
  }
}

TEST(Json, IsDiscardedWhereItIsTooDeepOrNone) {
  EXPECT_TRUE(parse_json(many("[", 500000) + many("]", 500000)).is_discarded());
  EXPECT_TRUE(parse_json("{\"a\":").is_discarded());
  EXPECT_EQ(parse_json("{\"a\":[1]}")["a"][0], 1);
  EXPECT_EQ(brief(parse_json("[1,\"" + many("x", 100) + "\"]")), "[1,\"" + many("x", 56) + "...");
}

}  // namespace
}  // namespace skein
