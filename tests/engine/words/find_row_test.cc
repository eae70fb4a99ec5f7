// Names that users give are found, or refused with the name they may have meant.
#include "engine/words/find_row.h"

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace skein {
namespace {

using testing::message_of;

struct Row {
  const char* name;
  int value;
};
const std::vector<Row> kRows = {{"one", 1}, {"forty-two", 42}, {"one-more", 2}};

TEST(FindRow, FindsExactlyTheName) {
  EXPECT_EQ(find_row(kRows, "forty-two")->value, 42);
  EXPECT_EQ(find_row(kRows, hyphens("forty_two")), &kRows[1]);
  for (const char* none : {"forty_two", "One", "one-", ""}) EXPECT_EQ(find_row(kRows, none), nullptr) << none;
  EXPECT_EQ(names_of(kRows), (std::vector<std::string>{"one", "forty-two", "one-more"}));
}

TEST(Joined, PutsItsOwnWordBeforeTheLast) {
  EXPECT_EQ(joined({}), "");
  EXPECT_EQ(joined({"a"}, ", ", " and "), "a");
  EXPECT_EQ(joined({"a", "b"}, ", ", " and "), "a and b");
  EXPECT_EQ(joined({"a", "b", "c"}, ", ", " and "), "a, b and c");
  EXPECT_EQ(joined({"a", "b", "c"}, " "), "a b c");
}

TEST(OneOf, GivesTheWordsValueOrSaysWhichAreAllowed) {
  const auto parse = [](const std::string& word) {
    return one_of<int>("--mode", word, {{"auto", 1}, {"on", 2}, {"off", 3}});
  };
  EXPECT_EQ(parse("off"), 3);
  EXPECT_EQ(message_of<BadOption>([&] { parse("yes"); }), "--mode yes: allowed are auto, on and off");
  EXPECT_EQ(message_of<BadOption>([&] { parse("auot"); }),
            "--mode auot: allowed are auto, on and off; did you mean auto?");
}

}  // namespace
}  // namespace skein
