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

TEST(Nearest, CountsSwapsAsOneAndPrefersTheFirst) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ab", "ba"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(nearest("spg", {"d-psgd", "sgp", "sgd"}), "sgp");
  EXPECT_EQ(nearest("sgx", {"sgp", "sgd"}), "sgp");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Nearest, OffersNoNameThatIsFarOff) {
  EXPECT_EQ(nearest("x", {"a", "b"}), "");
  EXPECT_EQ(nearest("ddp", {"sgp", "d-psgd", "easgd"}), "");
  EXPECT_EQ(nearest("dry-run", {"recipe", "data", "workers"}), "");
  EXPECT_EQ(nearest("photos", {"mnist", "cifar10"}), "");
  EXPECT_EQ(nearest("fashion", {"mnist", "fashion-mnist"}), "fashion-mnist");  // its beginning
  EXPECT_EQ(did_you_mean("dry-run", {"recipe"}), "");
  EXPECT_EQ(did_you_mean("resnet5", {"resnet20", "resnet50"}), "; did you mean resnet50?");
}

}  // namespace
}  // namespace skein
