// Succession: single rules and short stories. Random worlds, which look for what was not
// thought of: succession_test.cc.
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
  EXPECT_TRUE(r[0].complete_step(9, 9) && r[1].complete_step(8, 8) && r[2].complete_step(7, 6));
  r.away.insert(1);
  r.all_say(&Succession::suspect, 1);
  r[2].card("new");
  r.pass(0.2);  // it might be reachable again
  for (int i = 1; i < 3; ++i) {
    ASSERT_TRUE(r[i].next()) << i;
    EXPECT_EQ(*r[i].next(), (View{2, {{2, "b", false}, {3, "new", true}}, 7}));
    EXPECT_TRUE(r[i].frozen() && !r[i].excluded() && !r[i].complete_step(9, 9));
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

// 5 has died. 1 was cut off, with a proposal under way, and hears 2 and 3 again before 4.
TEST(Succession, WhoWasCutOffLeavesNobodyOutAsSoonAsItHearsAQuorum) {
  Room r(5);
  r[0].joins({9, "nine"});
  for (const MemberId m : {2, 3, 4, 5}) r[0].suspect(m);
  r.away = {2, 3, 4, 5};
  r.pass(5);
  r.all_say(&Succession::suspect, 5);
  r.away = {4, 5};
  r.pass(0.5);
  EXPECT_TRUE(r[1].frozen() && !r[0].next());
  for (const MemberId m : {2, 3}) r[0].trust(m);
  r.away = {5};
  r.pass(3);
  EXPECT_EQ(ids(r[0].next()), (Ids{1, 2, 3, 4, 9}));
  for (int i = 1; i < 4; ++i) EXPECT_EQ(r[i].next(), r[0].next()) << i;
}

// As before, but 1 is not cut off: it hears a quorum all the time, and 4 is lost for it.
TEST(Succession, WhoHearsAQuorumWaitsForTheSilentFromWhenItHasAnswered) {
  Room r(5);
  for (const MemberId m : {4, 5}) r[0].suspect(m);
  r.away = {2, 3, 4, 5};
  r.pass(1.05);
  r.away = {4, 5};
  r.pass(0.1);  // they are asked again
  EXPECT_TRUE(r[1].frozen() && !r[0].next());
  r.pass(0.1);
  EXPECT_EQ(ids(r[0].next()), (Ids{1, 2, 3}));
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

// What keeps an epoch from having two successors: both proposers are alive when they have a quorum, so they
// cannot both come after the proven death of the other. `never`: members without a vote that only one of the
// two may know as such.
struct Electorate {
  unsigned said, dead, never;
};
std::vector<Electorate> quorums(int n) {
  std::vector<Electorate> all;
  const unsigned everybody = (1u << n) - 1;
  for (unsigned never = 0; never <= everybody; ++never)
    for (unsigned said = 0; said <= everybody; ++said)
      for (unsigned dead = 0; dead <= everybody; ++dead) {
        if ((said | dead) & never) continue;
        Census c{.members = n - __builtin_popcount(never)};
        c.said = __builtin_popcount(said), c.dead = __builtin_popcount(dead);
        c.all_others = (said | dead | never) == everybody;
        if (is_quorum(c)) all.push_back({said, dead, never});
      }
  return all;
}
TEST(Quorums, HaveAMemberInCommonOrEachIsProvenDeadToTheOther) {
  for (int n = 1; n <= 4; ++n)
    for (const std::vector<Electorate> all = quorums(n); const Electorate& a : all)
      for (const Electorate& b : all) {
        if ((a.said & b.never) || (b.said & a.never)) continue;  // who never comes says nothing
        EXPECT_TRUE((a.said & b.said) || ((a.said & ~b.dead) == 0 && (b.said & ~a.dead) == 0))
            << n << ": " << a.said << ' ' << a.dead << ' ' << a.never << ", " << b.said << ' ' << b.dead
            << ' ' << b.never;
      }
}

// One of two has taken in a newcomer when the other dies, and the newcomer does not come to the meeting.
TEST(Succession, ANewcomerThatNeverCameIsNotNeededForAQuorum) {
  Succession s(1, {2, {{1, "a"}, {2, "b"}, {9, "nine", false}}, 4}, {});
  s.prove_dead(2), s.suspect(9);
  for (double now = 0; now < 10; now += 0.1) (void)s.tick(now);
  EXPECT_FALSE(s.next());
  s.never_came(9);
  for (double now = 10; now < 10.5; now += 0.1) (void)s.tick(now);
  EXPECT_EQ(ids(s.next()), Ids{1});
}

TEST(Succession, AMemberTwoEpochsBehindIsToldByAnyOfTheLast) {
  Succession late(2, first_view(3), {}), member(1, {3, {{1, "a"}, {9, "nine"}}, 20}, {});
  late.suspect(1), late.suspect(3);
  for (const double now : {0.0, 9.0})
    for (const Letter& l : late.tick(now)) {
      if (l.to != 1) continue;
      for (const Letter& answer : member.receive(2, l.bytes))
        if (answer.to == 2) late.receive(1, answer.bytes);
    }
  EXPECT_TRUE(late.excluded() && late.frozen());
  EXPECT_EQ(late.next()->epoch, 3u);
}

TEST(Succession, ANewcomerThatMissedTheLetterIsToldAgainUntilItIsHeard) {
  Succession a(1, {2, {{1, "a"}, {9, "nine", false}}, 4}, {});
  int told = 0;
  for (double now = 0; now < 10; now += 0.01)
    for (const Letter& l : a.tick(now)) told += View::read(l.bytes) == a.now();
  EXPECT_GT(told, 4);
  EXPECT_LT(told, 12);
  Succession nine(9, a.now(), {});
  for (const Letter& l : nine.tick(0)) a.receive(9, l.bytes);
  for (double now = 10; now < 20; now += 0.01) EXPECT_TRUE(a.tick(now).empty());
}

TEST(Succession, WhoseStateIsNotThereYetHoldsNobodyBack) {
  const View now{2, {{1, "a"}, {2, "b", false}, {3, "c", false}}, 4};
  Succession a(1, now, {}), b(2, now, {}), c(3, now, {});
  EXPECT_TRUE(a.complete_step(6, 5));
  b.restored();
  EXPECT_TRUE(b.complete_step(5, 5));
  a.joins({7, "seven"});
  std::deque<std::pair<MemberId, Letter>> box;
  const auto put = [&](MemberId from, std::vector<Letter> all) {
    for (Letter& l : all) box.push_back({from, std::move(l)});
  };
  for (put(1, a.tick(0)); !box.empty(); box.pop_front()) {
    const auto& [from, l] = box.front();
    if (l.to <= 3) put(l.to, (l.to == 1 ? a : l.to == 2 ? b : c).receive(from, std::string(l.bytes)));
  }
  ASSERT_TRUE(a.next());
  EXPECT_EQ(*a.next(), (View{3, {{1, "a"}, {2, "b"}, {3, "c", false}, {7, "seven", false}}, 5}));
  EXPECT_EQ(*c.next(), *a.next());
}

TEST(Succession, WhereAllLeaveNobodyIsFrozen) {
  Room r(3);
  for (int i = 0; i < 3; ++i)
    for (const MemberId m : {1, 2, 3}) r[i].leaves(m);
  r.pass(20);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(!r[i].frozen() && r[i].complete_step(1, 1)) << i;
}

// Of four members one ends, and one who has missed that asks another one.
TEST(Succession, WhoHearsThatTheRunHasEndedChoosesNoFurtherEpochAndTellsWhoAsks) {
  Room r(4);
  r.away.insert(3);
  r.post(1, r[0].end({.step = 25}));
  r.deliver();
  r.away = {1};
  r.all_say(&Succession::prove_dead, 1);
  r[2].suspect(4);
  r.pass(5);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(r[i].ended(), End{.step = 25}) << i;
    EXPECT_FALSE(r[i].next()) << i;
  }
  EXPECT_FALSE(r[3].frozen());
}

// ---- untrusted bytes

std::vector<Content> one_of_each() {
  Content c;
  c.epoch = 3, c.ballot = {7, 2}, c.higher = {8, 1};
  c.view = {3, {{5, "five", false}, {2, ""}}, 12};
  c.promise = {4, 2, true, "card", {{9, "x", false}}, Vote{{6, 5}, c.view}};
  c.end = {12, true};
  std::vector<Content> all;
  for (int w = int(Word::kPrepare); w <= int(Word::kEnded); ++w) c.word = Word(w), all.push_back(c);
  return all;
}

TEST(Letters, ReadBackAsTheyWereWrittenAndOnlyWhole) {
  for (const Content& c : one_of_each()) {
    const std::string bytes = c.write();
    const auto back = Content::read(bytes);
    ASSERT_TRUE(back) << int(c.word);
    EXPECT_EQ(back->write(), bytes);
    EXPECT_EQ(View::read(bytes).has_value(), c.word == Word::kDecided);
    EXPECT_FALSE(Content::read(bytes + '\0'));
    for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(Content::read(bytes.substr(0, n)));
  }
}

TEST(Letters, ChangedAnywhereTheyAreRefusedOrSaySomethingElse) {
  for (const Content& c : one_of_each()) {
    const std::string bytes = c.write();
    for (size_t at = 0; at < bytes.size(); ++at)
      for (const int by : {1, 0x80, 0xff}) {
        std::string changed = bytes;
        changed[at] = char(changed[at] ^ by);
        const auto back = Content::read(changed);
        EXPECT_TRUE(!back || back->write() == changed) << int(c.word) << ' ' << at;
      }
  }
}

TEST(Letters, OfViewsThatCannotBeAreRefused) {
  const auto readable = [](View v) { return View::read(v.write()).has_value(); };
  const View good{2, {{1, "a"}, {2, "b"}}, 0};
  EXPECT_TRUE(readable(good));
  EXPECT_FALSE(readable({2, {{1, "a"}, {1, "b"}}, 0}));
  EXPECT_FALSE(readable({2, {}, 0}));
  EXPECT_FALSE(readable({0, {{1, "a"}}, 0}));
  EXPECT_FALSE(readable({2, {{1, "a"}}, -1}));
  EXPECT_TRUE(readable({2, {{1, std::string(kLongestCard, 'x')}}, 0}));
  EXPECT_FALSE(readable({2, {{1, std::string(kLongestCard + 1, 'x')}}, 0}));
}

TEST(Succession, UnreadableLettersAreDroppedAndStrangersHaveNoVote) {
  Succession s(1, first_view(3), {});
  for (const std::string& bytes : {std::string(), std::string("hello"), std::string(100, '\xff')})
    EXPECT_TRUE(s.receive(2, bytes).empty());
  Content c;
  c.word = Word::kPrepare, c.epoch = 1, c.ballot = {1, 9};
  EXPECT_TRUE(s.receive(9, c.write()).empty());  // it is no member
  EXPECT_TRUE(s.receive(2, c.write()).empty());  // it is another one's ballot
  EXPECT_FALSE(s.frozen());
  c.ballot.by = 2;
  EXPECT_EQ(s.receive(2, c.write()).size(), 1u);
  EXPECT_TRUE(s.frozen());
}

}  // namespace
}  // namespace skein::comm
