// Names of shards: braces and wildcards expand in order, and what does not is refused with a message.
#include <gtest/gtest.h>

#include "data/sources/shards.h"
#include "tests/support/data_files.h"

namespace skein::data {
namespace {

using Names = std::vector<std::string>;

// Expands a pattern below the directory; what is returned is relative to it.
Names expanded(const TemporaryDirectory& d, const std::string& pattern) {
  Names names = expand_shards(d / pattern);
  for (std::string& n : names) n = n.substr(d.path().size() + 1);
  return names;
}

TEST(ShardNames, RangesCountInAsManyDigitsAsTheirFirstNumber) {
  const TemporaryDirectory d;
  for (const char* name : {"a-08", "a-09", "a-10", "b-9", "b-10"}) d.write(name, {});
  EXPECT_EQ(expanded(d, "a-{08..10}"), (Names{"a-08", "a-09", "a-10"}));
  EXPECT_EQ(expanded(d, "b-{9..10}"), (Names{"b-9", "b-10"}));
  EXPECT_EQ(expanded(d, "a-{09..09}"), (Names{"a-09"}));
}

TEST(ShardNames, SeveralBracesAreMultipliedAndWildcardsSorted) {
  const TemporaryDirectory d;
  for (const char* name : {"x-0", "x-1", "y-0", "y-1", "z[1]"}) d.write(name, {});
  EXPECT_EQ(expanded(d, "{y,x}-{0..1}"), (Names{"y-0", "y-1", "x-0", "x-1"}));
  EXPECT_EQ(expanded(d, "*-{1,0}"), (Names{"x-1", "y-1", "x-0", "y-0"}));
  EXPECT_EQ(expanded(d, "z[1]"), (Names{"z[1]"})) << "a file of this very name";
}

TEST(ShardNames, WhatDoesNotExpandIsRefused) {
  const TemporaryDirectory d;
  d.write("a-0", {});
  for (const char* range : {"{1..}", "{..3}", "{5..1}", "{x..y}", "{-1..3}", "{0..9999999}"})
    expect_says(message_of<BadOption>([&] { expand_shards(range); }), {range, "is not a range"});
  expect_says(message_of<BadOption>([] { expand_shards("a-{0..3"); }), {"a-{0..3", "a { without a }"});
  expect_says(message_of<BadOption>([] { expand_shards("{0..9999}{0..9999}"); }),
              {"100000000 shards, more than there can be"});
  expect_says(message_of<BadFile>([&] { expand_shards(d / "a-{0..2}"); }),
              {d / "a-1", "no such file", "one of the 3 shards"});
  expect_says(message_of<BadFile>([&] { expand_shards(d / "b-*"); }), {d / "b-*", "no shards match"});
}

}  // namespace
}  // namespace skein::data
