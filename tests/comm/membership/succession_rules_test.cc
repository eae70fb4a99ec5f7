// Succession: single rules and short stories. The worlds that look for what nobody thought of: succession_test.cc.
#include "comm/membership/succession.h"

#include <gtest/gtest.h>

#include <deque>

namespace skein::comm {
namespace {

using Options = Succession::Options;

View first_view(int n) {
  View v;
  for (int i = 0; i < n; ++i) v.members.push_back({MemberId(i + 1), std::string(1, char('a' + i))});
  return v;
}

// Members of one epoch, with letters that arrive at once and in order, except at those who are away.
struct Room {
  explicit Room(int n, Options o = {}) {
    for (int i = 0; i < n; ++i) members.emplace_back(MemberId(i + 1), first_view(n), o);
  }
  Succession& operator[](int i) { return members[size_t(i)]; }
  void post(MemberId from, std::vector<Letter> letters) {
    for (Letter& l : letters) post_box.push_back({from, std::move(l)});
  }
  void deliver() {
    while (!post_box.empty()) {
      auto [from, l] = std::move(post_box.front());
      post_box.pop_front();
      if (away.count(from) || away.count(l.to)) continue;
      if (l.to > members.size())
        newcomers[l.to] = View::read(l.bytes);
      else
        post(l.to, members[l.to - 1].receive(from, l.bytes));
    }
  }
  // So many seconds, in which all that are not away tick.
  void pass(double seconds) {
    for (const double end = now + seconds; now < end; now += 0.01)
      for (size_t i = 0; i < members.size(); ++i) {
        if (!away.count(i + 1)) post(i + 1, members[i].tick(now));
        deliver();
      }
  }
  void all_say(void (Succession::*what)(MemberId), MemberId of) {
    for (size_t i = 0; i < members.size(); ++i)
      if (i + 1 != of) (members[i].*what)(of);
  }
  std::deque<Succession> members;  // ids from 1
  std::set<MemberId> away;
  std::map<MemberId, std::optional<View>> newcomers;  // who was told of a view
  std::deque<std::pair<MemberId, Letter>> post_box;
  double now = 0;
};

std::vector<MemberId> ids(const std::optional<View>& v) {
  std::vector<MemberId> all;
  if (v)
    for (const View::Member& m : v->members) all.push_back(m.id);
  return all;
}
using Ids = std::vector<MemberId>;

TEST(Succession, NothingChangesWithoutAReason) {
  Room r(3);
  r.pass(20);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(!r[i].frozen() && !r[i].next()) << i;
}

TEST(Succession, GoesOnWithoutTheFirstFromTheFewestStepsCompleted) {
  Room r(3);
  r.pass(0.1);
  EXPECT_TRUE(r[0].complete_step(9) && r[1].complete_step(8) && r[2].complete_step(7, 6));
  r.away.insert(1);
  r.all_say(&Succession::suspect, 1);
  r[2].card("new");
  r.pass(0.1);
  for (int i = 1; i < 3; ++i) {
    ASSERT_TRUE(r[i].next()) << i;
    EXPECT_EQ(*r[i].next(), (View{2, {{2, "b", false}, {3, "new", true}}, 7}));
    EXPECT_TRUE(r[i].frozen() && !r[i].excluded() && !r[i].complete_step(9));
  }
  EXPECT_FALSE(r[0].frozen());
  r.away.clear();  // it was only cut off, and asks
  r[0].suspect(2);
  r.pass(2);
  EXPECT_TRUE(r[0].excluded() && r[0].frozen());
  EXPECT_EQ(ids(r[0].next()), (Ids{2, 3}));
}

TEST(Succession, OneOfTwoGoesOnIfTheOtherIsProvenDeadAndNotIfItIsSilent) {
  Room r(2);
  r.away.insert(1);
  r[1].suspect(1);
  r.pass(30);
  EXPECT_TRUE(r[1].frozen() && !r[1].next());
  r[1].prove_dead(1);
  r.pass(0.1);
  EXPECT_EQ(ids(r[1].next()), Ids{2});
}

TEST(Succession, NewcomersComeInTogetherAndLeaversGo) {
  Room r(2);
  r[0].joins({9, "nine"});
  r[1].joins({7, "seven"});
  r[1].leaves(2);
  r.pass(1);
  ASSERT_TRUE(r[0].next());
  EXPECT_EQ(*r[0].next(), (View{2, {{1, "a", true}, {7, "seven", false}, {9, "nine", false}}, 0}));
  EXPECT_TRUE(r[1].excluded());
  EXPECT_EQ(r.newcomers[7], r[0].next());
  EXPECT_TRUE(r[0].waiting().empty());
}

TEST(Succession, ARegisterDecidesBetweenTwoHalves) {
  Room r(4, {.has_register = true});
  const auto half = [&](MemberId one, MemberId other, MemberId away, MemberId away_too) {
    for (const MemberId m : {one, other}) r[int(m) - 1].suspect(away), r[int(m) - 1].suspect(away_too);
    r.away = {away, away_too};
    r.pass(3);
  };
  half(1, 2, 3, 4);
  half(3, 4, 1, 2);
  const auto low = r[0].wants_register(), high = r[2].wants_register();
  EXPECT_EQ(ids(low), (Ids{1, 2}));
  EXPECT_EQ(ids(high), (Ids{3, 4}));
  EXPECT_FALSE(r[0].next() || r[2].next());
  r.post(3, r[2].register_says(*high));
  r.post(1, r[0].register_says(*high));
  r.away.clear();
  r.deliver();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(r[i].next(), high) << i;
  EXPECT_TRUE(r[0].excluded() && r[1].excluded() && !r[2].excluded() && !r[3].excluded());
}

}  // namespace
}  // namespace skein::comm
