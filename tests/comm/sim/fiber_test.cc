// Fibers: exceptions in each of them, frames that are never returned from, and stacks in the place of former
// ones. That the sanitizers know which stack is run on shows only under them.
#include "comm/sim/fiber.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "engine/vectors/vec.h"

namespace skein::comm::sim {
namespace {

// Frames whose arrays a sanitizer puts marked bytes around, down to an exception that passes all of them.
[[gnu::noinline]] int throw_from(int depth) {
  volatile char around[96];
  std::memset(const_cast<char*>(around), depth, sizeof around);
  if (depth == 0) throw std::runtime_error("from below");
  return throw_from(depth - 1) + around[depth];
}
int caught_from(int depth) {
  try {
    return throw_from(depth);
  } catch (const std::runtime_error&) { return depth; }
}

TEST(Fiber, HandlesItsExceptionsWhileOthersRun) {
  Fiber outside;
  int caught = 0;
  std::unique_ptr<Fiber> first, second;
  first = std::make_unique<Fiber>([&] {
    try {
      throw_from(20);
    } catch (const std::runtime_error&) {
      second->resume(*first);  // which throws and catches its own in the meantime
      caught += std::uncaught_exceptions() == 0 ? 1 : 100;
    }
    outside.resume(*first);
  });
  second = std::make_unique<Fiber>([&] {
    caught += caught_from(30);
    first->resume(*second);
  });
  first->resume(outside);
  EXPECT_EQ(caught, 31);
}

// That of the fiber that made it, until it has one of its own.
TEST(Fiber, CountsMovedBytesWhileOthersRun) {
  const Tensor x = Tensor::zeros({100});
  Fiber outside;
  MovedBytes mine;
  std::unique_ptr<Fiber> first, second;
  int64_t of_first = 0;
  first = std::make_unique<Fiber>([&] {
    MovedBytes own;
    second = std::make_unique<Fiber>([&] {
      scale(x, 1.f);
      outside.resume(*second);
    });
    scale(x, 1.f);
    outside.resume(*first);
    of_first = own.take();
    outside.resume(*first);
  });
  first->resume(outside);
  EXPECT_EQ(mine.take(), 0);
  scale(x, 1.f);
  second->resume(outside);
  first->resume(outside);
  EXPECT_EQ(of_first, 2 * 800);
  EXPECT_EQ(mine.take(), 800);
}

// A fiber that has given way for good leaves its frames as they are.
TEST(Fiber, AnAbandonedStackIsNothingToTheNextOwnerOfItsMemory) {
  int caught = 0;
  for (int i = 0; i < 50; ++i) {
    Fiber outside;
    Fiber fiber([&] {
      char around[64] = {};
      caught += caught_from(10 + i % 3);
      outside.resume(fiber);
      caught += around[i];  // never
    });
    fiber.resume(outside);
    EXPECT_GT(caught_from(40), 0);  // on the thread's own stack, right after
  }
  EXPECT_GE(caught, 500);
}

TEST(Fiber, HundredsGiveWayToEachOther) {
  constexpr int kFibers = 300, kRounds = 5;
  Fiber outside;
  std::vector<std::unique_ptr<Fiber>> all;
  std::vector<int> turns(kFibers);
  for (int i = 0; i < kFibers; ++i)
    all.push_back(std::make_unique<Fiber>([&, i] {
      for (;;) {
        turns[i] += caught_from(3) == 3;
        (i + 1 < kFibers ? *all[i + 1] : outside).resume(*all[i]);
      }
    }));
  for (int r = 0; r < kRounds; ++r) all[0]->resume(outside);
  EXPECT_EQ(turns, std::vector<int>(kFibers, kRounds));
}

}  // namespace
}  // namespace skein::comm::sim
