// Lists of hosts: what SLURM abbreviates, and how many workers each gets.
#include "apps/launch/host_list.h"

#include <gtest/gtest.h>

#include "engine/base.h"

namespace skein::apps {
namespace {

using Names = std::vector<std::string>;

TEST(Hosts, ExpandsWhatSlurmAbbreviates) {
  EXPECT_EQ(expand_hosts("node[01-03,7]"), (Names{"node01", "node02", "node03", "node7"}));
  EXPECT_EQ(expand_hosts("a,gpu[9-11]-ib,b"), (Names{"a", "gpu9-ib", "gpu10-ib", "gpu11-ib", "b"}));
  EXPECT_EQ(expand_hosts("r[1-2]n[098-100]").size(), 6u);
  EXPECT_EQ(expand_hosts("r[1-2]n[098-100]")[4], "r2n099");
  EXPECT_EQ(expand_hosts("one"), Names{"one"});
  EXPECT_EQ(expand_counts("4(x2),1"), (std::vector<int>{4, 4, 1}));
  for (const char* bad : {"", "a,", "n[1", "n]1[", "n[2-1]", "n[a]", "n[[1]]", "n[1-99999999]"})
    EXPECT_THROW(expand_hosts(bad), BadOption) << bad;
  for (const char* bad : {"", "x", "2(x", "2(xy)", "2(x3"})
    EXPECT_THROW(expand_counts(bad), BadOption) << bad;
}

TEST(Hosts, SharesWorkersAmongThem) {
  const auto workers = [](const std::string& list, int n) {
    std::vector<int> all;
    for (const HostShare& h : parse_hosts(list, n)) all.push_back(h.workers);
    return all;
  };
  EXPECT_EQ(workers("a,b,c", 0), (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(workers("a,b,c", 6), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(workers("a:4,me@b", 0), (std::vector<int>{4, 1}));
  EXPECT_EQ(workers("a:4,b", 5), (std::vector<int>{4, 1}));
  EXPECT_EQ(parse_hosts("me@b:2", 0)[0].name, "me@b");
  try {
    parse_hosts("a,,b", 0);
    ADD_FAILURE() << "a name is missing";
  } catch (const BadOption& e) { EXPECT_STREQ(e.what(), "--hosts a,,b: a name is missing"); }
  for (const char* bad : {"a,a", "a:0", "a:x", "", "a,,b", "-oProxyCommand=x", "a:2,b"})
    EXPECT_THROW(parse_hosts(bad, 7), BadOption) << bad;
}

}  // namespace
}  // namespace skein::apps
