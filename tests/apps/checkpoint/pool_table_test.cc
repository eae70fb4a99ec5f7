// What a worker says of its state, and the hashes by which states are known to be alike.
#include "apps/checkpoint/pool_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "optim/snapshot.h"
#include "tests/support/snapshots.h"

namespace skein::apps {
namespace {

TEST(PoolTable, ReadsBackAsItWasWritten) {
  PoolTable t;
  t.has_state = true;
  t.tensors["a \"quoted\" name"] = {kI64, {2, 0, 3}, "abc"};
  t.tensors["scalar"] = {kBF16, {}, ""};
  t.wholes = {{"least", INT64_MIN}, {"most", INT64_MAX}};
  t.reals = {{"infinite", -INFINITY}, {"zero", -0.0}, {"third", 1.0 / 3}};
  const PoolTable back = table_of(to_text(t));
  EXPECT_TRUE(back.has_state);
  EXPECT_EQ(back.tensors, t.tensors);
  EXPECT_EQ(back.wholes, t.wholes);
  for (const auto& [name, v] : t.reals) EXPECT_TRUE(optim::same_bits(back.reals.at(name), v)) << name;
  for (const char* bad :
       {"", "{}", R"({"has_state":true,"tensors":{"x":[9,[1],"a"]},"wholes":{},"reals":{}})",
        R"({"has_state":true,"tensors":{"x":[0,[-1],"a"]},"wholes":{},"reals":{}})",
        R"({"has_state":true,"tensors":{"x":[0,[4294967296,4294967296],"a"]},"wholes":{},"reals":{}})",
        R"({"has_state":true,"tensors":{},"wholes":{"k":0.5},"reals":{}})"})
    EXPECT_THROW(table_of(bad), Error) << bad;
}

TEST(PoolTable, AHashIsOfEveryPieceAndOfTheirOrder) {
  const int64_t piece = int64_t(1) << 22;
  const Tensor a = Tensor::zeros({2 * piece + 1}, kU8);
  const std::string zeros = hash_of(a);
  std::set<std::string> hashes = {zeros};
  for (const int64_t at : {int64_t(0), piece - 1, piece, 2 * piece}) {
    a.data<uint8_t>()[at] = 1;
    hashes.insert(hash_of(a));
    a.data<uint8_t>()[at] = 0;
  }
  EXPECT_EQ(hashes.size(), 5u);
  EXPECT_EQ(hash_of(a), zeros);
}

}  // namespace
}  // namespace skein::apps
