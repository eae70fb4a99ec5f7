// Snapshots: what a walk visits comes back to the bit, and a comparison tells every kind of field apart.
#include "optim/snapshot.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/snapshots.h"

namespace skein::optim {
namespace {

struct State {
  Tensor x = Tensor::of<float>({3}, {1, 2, 3}), none;
  int64_t count = 7;
  double weight = 0.5;
  std::string letters = std::string("\0\xff", 2);
  Walk walk() {
    return [this](Archive& a) {
      a("x", x), a("none", none), a("count", count), a("weight", weight), a("letters", letters);
    };
  }
};

Snapshot of(State& s) {
  Snapshot taken;
  taken.take(s.walk());
  return taken;
}

TEST(Snapshot, RestoresEveryKindOfFieldInPlace) {
  State s;
  const Tensor window = s.x.view({1}, 2);
  Snapshot kept = of(s);
  s.x.data<float>()[2] = 9, s.count = 0, s.weight = NAN, s.letters = "another";
  EXPECT_FALSE(of(s) == kept);
  kept.restore(s.walk());
  EXPECT_EQ(window.item(), 3);
  EXPECT_EQ(s.count, 7);
  EXPECT_EQ(s.weight, 0.5);
  EXPECT_EQ(s.letters, std::string("\0\xff", 2));
  EXPECT_FALSE(s.none);
  EXPECT_TRUE(of(s) == kept);
}

TEST(Snapshot, DiffersWhereAnyBitDoes) {
  State s;
  const Snapshot before = of(s);
  for (const auto& change : std::vector<std::function<void(State&)>>{
           [](State& t) { t.x.data<float>()[0] = std::nextafter(1.f, 2.f); },
           [](State& t) {
             t.x = Tensor::of<float>({2}, {1, 2});
           },
           [](State& t) { t.none = Tensor::zeros({1}); }, [](State& t) { ++t.count; },
           [](State& t) { t.weight = std::nextafter(0.5, 1); }, [](State& t) { t.letters += '\0'; }}) {
    State other;
    change(other);
    EXPECT_FALSE(of(other) == before);
  }
  State positive, negative, nan;
  positive.weight = 0.0, negative.weight = -0.0, nan.weight = NAN;
  EXPECT_FALSE(of(positive) == of(negative));
  EXPECT_TRUE(of(nan) == of(nan));
}

TEST(Snapshot, TakesAFieldOfAnotherShapeAnew) {
  State s;
  Snapshot kept = of(s);
  s.x = Tensor::of<float>({2}, {4, 5});
  kept.take(s.walk());
  s.x.data<float>()[1] = 0;
  kept.restore(s.walk());
  EXPECT_EQ(s.x.data<float>()[1], 5);
}

TEST(Snapshot, RefusesFieldsThatItDoesNotHave) {
  State s;
  Snapshot kept = of(s);
  EXPECT_THROW(kept.restore([&](Archive& a) { a("y", s.x); }), Error);
  EXPECT_THROW(kept.restore([&](Archive& a) { a("count", s.weight); }), Error);
}

}  // namespace
}  // namespace skein::optim
