// Pushes with ranks as threads: what is packed, rounded and copied, and waiting for room.
#include "comm/communicator/sender.h"

#include <cstring>

#include "comm/communicator/unrounded.h"
#include "tests/support/files.h"
#include "tests/support/testing.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

using testing::message_of;

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.size() == b.size() &&
         std::memcmp(a.raw(), b.raw(), size_t(a.bytes())) == 0;
}

TEST(Push, ScalesAndLeavesXToItsOwner) {
  in_local_world(3, [](Communicator& c) {
    const Tensor x = ones(1000, float(c.rank()));
    for (Rank r = 0; r < 3; ++r)
      if (r != c.rank()) c.push(r, 1, 0, 0.5f, x, 0.25);
    fill(x, -1.f);  // x is ours again
    c.barrier();
    for (Rank r = 0; r < 3; ++r) {
      if (r == c.rank()) continue;
      const Message m = c.take(r, 1, 0, x);
      EXPECT_EQ(m.from, r);
      EXPECT_EQ(m.weight, 0.25);
      EXPECT_EQ(m.payload.data<float>()[999], 0.5f * float(r));
    }
  });
}

TEST(Push, PacksOncePerDistinctFactor) {
  in_local_world(4, [](Communicator& c) {
    if (c.rank() == 0) {
      c.push({{1, 0.5f, 1}, {2, 0.25f, 2}, {3, 0.5f, 3}}, 1, 0, ones(100));
      c.barrier();
      return;
    }
    const Message m = c.take(0, 1, 0);
    EXPECT_EQ(m.weight, double(c.rank()));
    EXPECT_EQ(m.payload.data<float>()[0], c.rank() == 2 ? 0.25f : 0.5f);
    // Ranks 1 and 3 look at the same memory.
    const auto place = [](const Message& m) {
      return Tensor::of<int64_t>({1}, {int64_t(intptr_t(m.payload.raw()))});
    };
    if (c.rank() == 3) c.push(1, 2, 0, 1, place(m));
    if (c.rank() == 1) { EXPECT_EQ(*c.take(3, 2, 0).payload.data<int64_t>(), *place(m).data<int64_t>()); }
    c.barrier();
  });
}

TEST(Push, KeepsEveryBitOfIntegersAndTheTypeOfFloats) {
  in_local_world(2, [](Communicator& c) {
    const Rank other = 1 - c.rank();
    c.push(other, 1, 0, 1, Tensor::of<int64_t>({2}, {int64_t(1) << 62, -3}));
    EXPECT_EQ(c.take(other, 1, 0).payload.data<int64_t>()[0], int64_t(1) << 62);
    c.push(other, 2, 0, 0.5f, Tensor::of<bf16>({1}, {bf16(3.f)}));
    EXPECT_EQ(float(*c.take(other, 2, 0).payload.data<bf16>()), 1.5f);
  });
}

TEST(Push, OverABf16WireComesBackAsF32RoundedOnce) {
  in_local_world(2,
                 [](Communicator& c) {
                   const Rank other = 1 - c.rank();
                   const Tensor x = Tensor::of<float>({2}, {1.f / 3, 1e-30f});
                   c.push(other, 1, 0, 0.7f, x);
                   const Message m = c.take(other, 1, 0, x);
                   EXPECT_EQ(m.payload.dtype(), kF32);
                   EXPECT_EQ(m.payload.data<float>()[0], float(bf16(0.7f * (1.f / 3))));
                   EXPECT_EQ(c.meter().traffic().bytes, 4);  // two elements of two bytes
                 },
                 {.deadline = 20, .wire = kBF16});
}

TEST(Unrounded, GivesAllRanksTheBitsOfOne) {
  in_local_world(3,
                 [](Communicator& c) {
                   const float third = 1.f / 3;
                   const Tensor x = Tensor::of<float>({1}, {c.rank() == 1 ? third : 0});
                   {
                     const Unrounded exactly(c);
                     c.broadcast(x, 1);
                   }
                   EXPECT_EQ(*x.data<float>(), third);
                   c.broadcast(x, 1);  // the wire is narrow again
                   EXPECT_EQ(*x.data<float>(), c.rank() == 1 ? third : float(bf16(third)));
                 },
                 {.deadline = 20, .wire = kBF16});
}

// What is filled by hand, and what is read as it came, are the push and the take but for the copies.
TEST(Push, WithoutACopyIsThePush) {
  for (const DType wire : {kF32, kBF16})
    in_local_world(2,
                   [wire](Communicator& c) {
                     const Rank other = 1 - c.rank();
                     const Tensor x = testing::random_uniform({1003}, uint64_t(c.rank())),
                                  filled = c.wire_buffer(x);
                     EXPECT_EQ(filled.dtype(), wire);
                     copy(filled, x);
                     for (const int64_t step : {0, 1}) c.push(other, 1, step, 1, x, 0.25);
                     for (const int64_t step : {2, 3}) c.push_buffer(other, 1, step, filled, 0.25);
                     for (const int64_t step : {0, 2}) {
                       const Message m = c.take(other, 1, step, x),
                                     narrow = c.take(other, 1, step + 1, x, Precision::kWire);
                       EXPECT_EQ(m.payload.dtype(), kF32);
                       EXPECT_EQ(narrow.payload.dtype(), wire);
                       EXPECT_EQ(m.weight, 0.25);
                       EXPECT_EQ(narrow.weight, 0.25);
                       const Tensor theirs = testing::random_uniform(x.shape(), uint64_t(other)),
                                    low({x.size()}, wire), widened({x.size()});
                       copy(low, theirs), copy(widened, low);
                       EXPECT_TRUE(same_bytes(m.payload, widened)) << wire << step;
                       EXPECT_TRUE(same_bytes(narrow.payload, low)) << wire << step;
                     }
                     EXPECT_EQ(c.meter().traffic().bytes, 4 * x.size() * size_of(wire));
                   },
                   {.deadline = 20, .wire = wire});
}

TEST(Push, WithoutACopyIsRefusedInAnotherType) {
  in_local_world(
      1, [](Communicator& c) { EXPECT_THROW(c.push_buffer(0, 1, 0, Tensor::zeros({3}, kBF16)), Error); });
}

TEST(Push, WaitsForRoomAndNamesWhoTakesNothing) {
  auto world = local_world(2, 1000);
  Communicator a(*world[0], {.deadline = 0.1}), b(*world[1]);
  a.push(1, 1, 0, 1, ones(200));
  a.push(1, 1, 1, 1, ones(50));
  EXPECT_NE(message_of<Timeout>([&] { a.push(1, 1, 2, 1, ones(1)); }).find("rank 1 has not taken"),
            std::string::npos);
  b.take(0, 1, 0);
  EXPECT_NO_THROW(a.push(1, 1, 3, 1, ones(1)));
}

}  // namespace
}  // namespace skein::comm
