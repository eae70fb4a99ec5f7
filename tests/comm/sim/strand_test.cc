// Strands: of threads or of fibers, one at a time goes on, and the order is the same.
#include "comm/sim/strand.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <thread>

#include "engine/base.h"

namespace skein::comm::sim {
namespace {

// Each strand notes its name `rounds` times and resumes the next one of the ring. Each ends by resuming the
// one behind it, the last one by resuming who began.
std::string ring(int n, int rounds, bool fibers) {
  std::string notes;
  Strand outside;
  if (fibers) outside.make_fiber();
  std::deque<Strand> strands(static_cast<size_t>(n));
  std::vector<std::thread> threads;
  const auto main = [&](int i) {
    Strand& me = strands[size_t(i)];
    me.await_turn();
    for (int k = 0; k < rounds; ++k) {
      notes += char('a' + i);
      if (n > 1) strands[size_t((i + 1) % n)].resume(me);
    }
    notes += char('A' + i);
    (i + 1 < n ? strands[size_t(i + 1)] : outside).resume(me, true);
  };
  for (int i = 0; i < n; ++i)
    if (fibers)
      strands[size_t(i)].make_fiber([&, i] { main(i); });
    else
      threads.emplace_back(main, i);
  strands[0].resume(outside);
  notes += '.';
  for (std::thread& t : threads) t.join();
  return notes;
}

TEST(Strand, GoesOnWhereItWasOnceItIsResumed) {
  for (const bool fibers : {false, true}) {
    EXPECT_EQ(ring(1, 2, fibers), "aaA.") << fibers;
    EXPECT_EQ(ring(3, 2, fibers), "abcabcABC.") << fibers;
  }
}

TEST(Strand, ThreadsAndFibersTakeTurnsInTheSameOrder) {
  for (const int n : {2, 7, 20}) EXPECT_EQ(ring(n, 50, false), ring(n, 50, true)) << n;
}

// What one strand handles does not mix with what another one does meanwhile.
TEST(Strand, ExceptionsStayWithinTheirStrand) {
  for (const bool fibers : {false, true}) {
    Strand outside, inner;
    if (fibers) outside.make_fiber();
    std::string caught;
    const auto main = [&] {
      inner.await_turn();
      try {
        throw Error("inner");
      } catch (const Error& e) {
        outside.resume(inner);
        caught += e.what();
      }
      outside.resume(inner, true);
    };
    std::thread thread;
    if (fibers)
      inner.make_fiber(main);
    else
      thread = std::thread(main);
    inner.resume(outside);
    try {
      throw Error("outer ");
    } catch (const Error& e) {
      caught += e.what();
      inner.resume(outside);
    }
    if (thread.joinable()) thread.join();
    EXPECT_EQ(caught, "outer inner") << fibers;
  }
}

}  // namespace
}  // namespace skein::comm::sim
