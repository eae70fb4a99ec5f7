// Fair rates by their definition, and the times at which flows end by closed forms.
#include "comm/sim/fluid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "engine/random.h"

namespace skein::comm::sim {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Case {
  std::vector<double> capacities;
  std::vector<Course> flows;
};
Case random_case(uint64_t seed, uint64_t turns = 1) {
  const Draw draw{seed, Purpose::kTest, 0, 0};
  uint64_t k = 0;
  const auto one_of = [&](uint64_t n) { return draw.bits(k++) % n; };
  Case c;
  for (uint64_t r = 1 + one_of(8); r > 0; --r) c.capacities.push_back(1 + double(one_of(100)) / 10);
  for (uint64_t f = 1 + one_of(20); f > 0; --f) {
    Course course;
    for (size_t r = 0; r < c.capacities.size(); ++r)
      if (one_of(3) == 0) course.through.push_back(r);
    if (course.through.empty() || one_of(4) == 0) course.most = 0.1 + double(one_of(30)) / 10;
    course.turn = int64_t(one_of(turns));
    c.flows.push_back(course);
  }
  return c;
}

// The definition for the flows of one turn: they and those before them use of a resource at most its
// capacity, and each has its most or a bottleneck.
void expect_fair(const Case& c, const std::vector<double>& rates, int64_t turn, uint64_t seed) {
  std::vector<double> used(c.capacities.size(), 0), largest(c.capacities.size(), 0);
  for (size_t f = 0; f < rates.size(); ++f)
    for (size_t r : c.flows[f].through) {
      if (c.flows[f].turn <= turn) used[r] += rates[f];
      if (c.flows[f].turn == turn) largest[r] = std::max(largest[r], rates[f]);
    }
  for (size_t r = 0; r < used.size(); ++r) ASSERT_LE(used[r], c.capacities[r] * (1 + 1e-9)) << seed;
  for (size_t f = 0; f < rates.size(); ++f) {
    if (c.flows[f].turn != turn) continue;
    ASSERT_LE(rates[f], c.flows[f].most) << seed;
    const auto& through = c.flows[f].through;
    const bool bottleneck = std::any_of(through.begin(), through.end(), [&](size_t r) {
      return used[r] > c.capacities[r] * (1 - 1e-9) && rates[f] > largest[r] - 1e-9;
    });
    ASSERT_TRUE(bottleneck || rates[f] == c.flows[f].most) << seed << " flow " << f;
  }
}

TEST(FairRates, GiveEachFlowItsMostOrABottleneck) {
  for (uint64_t seed = 0; seed < 500; ++seed)
    for (int64_t turns : {1, 2, 5}) {
      const Case c = random_case(seed, uint64_t(turns));
      const std::vector<double> rates = fair_rates(c.capacities, c.flows);
      for (int64_t turn = 0; turn < turns; ++turn) expect_fair(c, rates, turn, seed);
    }
}

TEST(FairRates, OfATurnDoNotDependOnLaterTurns) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Case c = random_case(seed, 4);
    const std::vector<double> rates = fair_rates(c.capacities, c.flows);
    Case early{c.capacities, {}};
    for (const Course& f : c.flows)
      if (f.turn < 2) early.flows.push_back(f);
    const std::vector<double> alone = fair_rates(early.capacities, early.flows);
    for (size_t f = 0, e = 0; f < rates.size(); ++f) {
      if (c.flows[f].turn >= 2) continue;
      ASSERT_DOUBLE_EQ(rates[f], alone[e++]) << seed;
    }
  }
}

TEST(FairRates, OfFlowsThatAreAlikeAreAlike) {
  for (double rate : fair_rates({12}, std::vector<Course>(5, {{0}}))) EXPECT_DOUBLE_EQ(rate, 2.4);
}

TEST(FairRates, WithoutAnyBoundAreInfinite) { EXPECT_EQ(fair_rates({}, {Course{}})[0], kInfinite); }

// When each of these flows ends, which begin one after the other at these seconds.
struct Begun {
  double at, amount;
  Course course;
};
std::vector<double> ends_of(const std::vector<double>& capacities, const std::vector<Begun>& flows,
                            const std::function<void(Baton&, Fluid&)>& more = {}) {
  Baton baton;
  Fluid fluid(baton);
  for (double c : capacities) fluid.add(c);
  const Clock::time_point dawn = baton.now();
  const auto second = [&](double s) { return dawn + Clock::duration(int64_t(std::llround(s * 1e9))); };
  std::vector<double> ends(flows.size(), -1);
  for (size_t i = 0; i < flows.size(); ++i)
    baton.at(second(flows[i].at), [&, i] {
      fluid.begin(flows[i].course, flows[i].amount,
                  [&, i] { ends[i] = std::chrono::duration<double>(baton.now() - dawn).count(); });
    });
  if (more) more(baton, fluid);
  baton.begin([&] { nap(std::chrono::hours(10)); }, [] {});
  baton.run(Clock::time_point::max());
  return ends;
}

// The same by the definition: between two of these moments all rates are those of fair_rates().
std::vector<double> expected_ends(const std::vector<double>& capacities, const std::vector<Begun>& flows) {
  std::vector<double> left, ends(flows.size(), -1);
  for (const Begun& f : flows) left.push_back(f.amount);
  for (double now = 0; std::count(ends.begin(), ends.end(), -1) > 0;) {
    std::vector<size_t> here;
    std::vector<Course> courses;
    double next = kInfinite;
    for (size_t f = 0; f < flows.size(); ++f) {
      if (ends[f] >= 0) continue;
      if (flows[f].at > now)
        next = std::min(next, flows[f].at);
      else
        here.push_back(f), courses.push_back(flows[f].course);
    }
    const std::vector<double> rates = fair_rates(capacities, courses);
    for (size_t i = 0; i < here.size(); ++i) next = std::min(next, now + left[here[i]] / rates[i]);
    for (size_t i = 0; i < here.size(); ++i) {
      left[here[i]] -= rates[i] * (next - now);
      if (left[here[i]] < 1e-9) ends[here[i]] = next;
    }
    now = next;
  }
  return ends;
}

// Hosts whose links lead to that of a server, some of which also send to each other, or are slow.
TEST(Fluid, EndsFlowsAsFairRatesSayAlsoWhereManyMeet) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Draw draw{seed, Purpose::kTest, 3, 0};
    uint64_t k = 0;
    const auto one_of = [&](uint64_t n) { return draw.bits(k++) % n; };
    const uint64_t hosts = 8 + one_of(40), slow = one_of(4) ? hosts : one_of(hosts), beside = one_of(3);
    std::vector<double> capacities(1 + hosts, 10);
    if (slow < hosts) capacities[1 + slow] = 0.2;
    std::vector<Begun> flows;
    for (uint64_t f = 0; f < 3 * hosts; ++f) {
      Begun b{double(one_of(2) ? one_of(1000) : 0) / 100, 1 + double(one_of(200)) / 7, {{0, 1 + f % hosts}}};
      if (beside > 0 && one_of(20 * beside) == 0) b.course.through = {1 + f % hosts, 1 + (f + 1) % hosts};
      b.course.turn = beside > 1 ? int64_t(one_of(2)) : 0;
      flows.push_back(b);
    }
    const std::vector<double> ends = ends_of(capacities, flows), expected = expected_ends(capacities, flows);
    for (size_t f = 0; f < flows.size(); ++f) ASSERT_NEAR(ends[f], expected[f], 1e-5) << seed << ' ' << f;
  }
}

TEST(Fluid, TwoFlowsOnOneLinkShareItWhileBothAreThere) {
  // Alone for one second: 10 of 40 are through. Then half of the link each: the second ends after 20 / 5 s,
  // at 5 s, when the first has 10 left, which it sends alone.
  const std::vector<double> ends = ends_of({10}, {{0, 40, {{0}}}, {1, 20, {{0}}}});
  EXPECT_NEAR(ends[1], 5, 1e-8);
  EXPECT_NEAR(ends[0], 6, 1e-8);
}

TEST(Fluid, AFlowOfALaterTurnStandsStillMeanwhile) {
  // 10 of 40 are through when the other comes, whose 20 take 2 s; then 30 are left.
  const std::vector<double> ends = ends_of({10}, {{0, 40, {.through = {0}, .turn = 5}},  //
                                                  {1, 20, {.through = {0}, .turn = 3}}});
  EXPECT_NEAR(ends[1], 3, 1e-8);
  EXPECT_NEAR(ends[0], 6, 1e-8);
}

TEST(Fluid, AFlowThatIsHeldElsewhereLeavesItsShareToOthers) {
  // The first has 2 on its own link; the other takes the 8 that are left of the shared one.
  const std::vector<double> ends = ends_of({10, 2}, {{0, 20, {{0, 1}}}, {0, 40, {{0}}}});
  EXPECT_NEAR(ends[1], 5, 1e-8);
  EXPECT_NEAR(ends[0], 10, 1e-8);
}

TEST(Fluid, UsesUpAResourceAsLongAsAnybodyWantsIt) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Draw draw{seed, Purpose::kTest, 1, 0};
    std::vector<Begun> flows;
    double sum = 0;
    for (uint64_t f = 0; f < 12; ++f) {
      const double amount = 1 + double(draw.bits(2 * f) % 100);
      flows.push_back({double(draw.unit(2 * f + 1)), amount, {{0}}});
      sum += amount;
    }
    flows.push_back({0, 7, {{0}}});  // one flow from the beginning; all have come before it ends
    const std::vector<double> ends = ends_of({7}, flows);
    EXPECT_NEAR(*std::max_element(ends.begin(), ends.end()), (sum + 7) / 7, 1e-6) << seed;
  }
}

TEST(Fluid, ACanceledFlowLeavesItsShareAndNeverEnds) {
  const std::vector<double> ends = ends_of({10}, {{0, 40, {{0}}}}, [](Baton& baton, Fluid& fluid) {
    const Fluid::Flow other = fluid.begin({{0}}, 1000, [] { ADD_FAILURE() << "has ended"; });
    baton.at(baton.now() + std::chrono::seconds(2), [&fluid, other] { fluid.cancel(other); });
  });
  EXPECT_NEAR(ends[0], 5, 1e-8);  // 10 in two seconds, then 30 in three
}

TEST(Fluid, WhatSharesNothingIsNotSlowed) {
  const std::vector<double> ends = ends_of({10, 10}, {{0, 40, {{0}}}, {0, 30, {{1}}}, {0, 5, {{}, 1}}});
  EXPECT_NEAR(ends[0], 4, 1e-8);
  EXPECT_NEAR(ends[1], 3, 1e-8);
  EXPECT_NEAR(ends[2], 5, 1e-8);
}

}  // namespace
}  // namespace skein::comm::sim
