// Hearing: when a silence is noticed, by whom, and what ends it.
#include "comm/sim/hearing.h"

#include <gtest/gtest.h>

#include <vector>

namespace skein::comm::sim {
namespace {

struct Silent {
  Baton::Worker by, of;
  double seconds;
  bool operator==(const Silent&) const = default;
};

// Three workers that sleep; one hears nothing of another for 10 s before it says so.
struct Listeners {
  Baton baton;
  Network network{baton, {}};
  std::vector<Silent> silences;
  Hearing hearing{baton, network, 10, [this](auto by, auto of, double s) {
                    silences.push_back({by, of, s});
                  }};

  Listeners() {
    for (int w = 0; w < 3; ++w) hearing.has(baton.begin([] { nap(in_seconds(100)); }, [] {}));
  }
  void at(double second, std::function<void()> event) {
    baton.at(Clock::time_point(in_seconds(Baton::kDawn + second)), std::move(event));
  }
  std::vector<Silent> run() {
    baton.run(Clock::time_point::max());
    return silences;
  }
};

TEST(Hearing, TheDeadAreNotHeardByAnybodyElse) {
  Listeners l;
  l.at(1, [&] { l.hearing.dies(2), l.hearing.listen(2); });
  EXPECT_EQ(l.run(), (std::vector<Silent>{{1, 2, 10}, {3, 2, 10}}));
}

TEST(Hearing, OfACutBothSidesHearNothingUnlessItIsMendedInTime) {
  for (const double mended : {10.0, 12.0}) {
    Listeners l;
    l.at(1, [&] { l.network.cut(1, 3), l.hearing.listen(1); });
    l.at(mended, [&] { l.network.mend(1, 3), l.hearing.listen(1); });
    EXPECT_EQ(l.run(), mended < 11 ? std::vector<Silent>{} : (std::vector<Silent>{{1, 3, 10}, {3, 1, 10}}));
  }
}

TEST(Hearing, ASilenceThatBeganAgainIsCountedFromThere) {
  Listeners l;
  const auto cut = [&] { l.network.cut(1, 2), l.hearing.listen(1); };
  l.at(1, cut);
  l.at(8, [&] { l.network.mend(1, 2), l.hearing.listen(1); });
  l.at(9, cut);
  l.at(18.5, [&] { EXPECT_TRUE(l.silences.empty()); });
  EXPECT_EQ(l.run().size(), 2u);
}

// Worker 1 hangs from 5 to 30, and worker 2 is dead since 1: worker 1 says so 10 s after it woke.
TEST(Hearing, WhoHungGivesTheOthersTheirTimeAgain) {
  Listeners l;
  l.at(1, [&] { l.hearing.dies(2), l.hearing.listen(2); });
  l.at(5, [&] { l.baton.hang(1), l.hearing.listen(1); });
  l.at(30, [&] { l.hearing.forgive(1), l.baton.wake(1), l.hearing.listen(1); });
  l.at(39, [&] { EXPECT_EQ(l.silences.size(), 3u) << "both others miss worker 1"; });
  EXPECT_EQ(l.run(), (std::vector<Silent>{{3, 2, 10}, {2, 1, 10}, {3, 1, 10}, {1, 2, 10}}));
}

}  // namespace
}  // namespace skein::comm::sim
