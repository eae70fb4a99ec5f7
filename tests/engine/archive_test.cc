// Archives that rename or skip fields of another.
#include "engine/archive.h"

#include <gtest/gtest.h>

#include "tests/support/peek.h"

namespace skein {
namespace {

using Numbers = std::map<std::string, double>;

struct State {
  int64_t count = 3;
  double weight = 0.5;
  void visit(Archive& a) { a("count", count), a("weight", weight); }
};

struct Nested {
  std::string skipped;
  State inner = {}, outer = {};
  void visit(Archive& a) {
    Under first(a, "a."), second(first, "b.");
    inner.visit(second);
    Without some(a, skipped);
    outer.visit(some);
  }
};

TEST(Under, PrefixesNest) {
  Nested n{.skipped = "-"};
  EXPECT_EQ(Peek(n).numbers, (Numbers{{"a.b.count", 3}, {"a.b.weight", 0.5}, {"count", 3}, {"weight", 0.5}}));
}

TEST(Without, SkipsWhatBeginsWithThePrefix) {
  Nested n{.skipped = "coun"};
  EXPECT_EQ(Peek(n).numbers, (Numbers{{"a.b.count", 3}, {"a.b.weight", 0.5}, {"weight", 0.5}}));
  n.skipped = "";  // of every name
  EXPECT_EQ(Peek(n).numbers, (Numbers{{"a.b.count", 3}, {"a.b.weight", 0.5}}));
}

}  // namespace
}  // namespace skein
