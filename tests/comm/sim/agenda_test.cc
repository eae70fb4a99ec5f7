// The agenda: order, forgetting, memory.
#include "comm/sim/agenda.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/random.h"

namespace skein::comm::sim {
namespace {

Clock::time_point at(int64_t t) { return Clock::time_point(std::chrono::nanoseconds(t)); }

// Against an ordered map, over random entries, cancellations and takings.
TEST(Agenda, GivesWhatIsDueInOrderOfTimeAndThenOfEntry) {
  Agenda agenda;
  std::map<std::pair<Clock::time_point, uint64_t>, Agenda::Alarm> expected;
  uint64_t taken = 0;
  const Draw draw{7, Purpose::kTest};
  for (uint64_t i = 0; i < 20000; ++i) {
    const uint32_t what = draw.bits(3 * i) % 8;
    if (what < 4) {
      const auto time = at(draw.bits(3 * i + 1) % 1000);
      const uint64_t number = agenda.entries() + 1;
      expected[{time, number}] = agenda.add(time, [&taken, number] { taken = number; });
    } else if (what < 6 && !expected.empty()) {
      const auto one = std::next(expected.begin(), draw.bits(3 * i + 2) % expected.size());
      agenda.cancel(one->second);
      agenda.cancel(one->second);  // again: nothing
      expected.erase(one);
    } else if (!expected.empty()) {
      ASSERT_EQ(agenda.first(), expected.begin()->first.first);
      agenda.take_first()();
      ASSERT_EQ(taken, expected.begin()->first.second);
      agenda.cancel(expected.begin()->second);  // has been taken
      expected.erase(expected.begin());
    }
    ASSERT_EQ(agenda.empty(), expected.empty());
  }
}

}  // namespace
}  // namespace skein::comm::sim
