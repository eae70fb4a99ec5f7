// A register in a directory: the first view that is claimed for an epoch is kept, whoever asks.
#include "apps/launch/elastic/register.h"

#include <gtest/gtest.h>

#include <thread>

#include "apps/launch/crew/superior.h"
#include "apps/launch/elastic/card.h"
#include "engine/words/file.h"
#include "tests/support/files.h"
#include "tests/support/program.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

comm::View view_of(uint32_t epoch, const std::vector<const Register*>& members) {
  comm::View v{.epoch = epoch, .members = {}, .step = 7};
  for (size_t i = 0; i < members.size(); ++i)
    v.members.push_back({10 + i, make_card(4711, {"10.0.0.7"}, i == 1, members[i]->words()), true});
  return v;
}

struct Registers : ::testing::Test {
  testing_programs::Workplace place;
  const fs::path run = place.path() / "run";
  Register first, second, stranger;
  Registers() {
    EXPECT_TRUE(Register::is_name(first.found(run)));
    EXPECT_TRUE(second.enter(run, first.name()));
  }
};

TEST_F(Registers, DecideForThoseWhoAllSeeThem) {
  EXPECT_TRUE(first.decides(view_of(1, {&first, &second})));
  EXPECT_TRUE(second.decides(view_of(1, {&first, &second})));
  EXPECT_FALSE(first.decides(view_of(1, {&first, &stranger})));
  EXPECT_FALSE(stranger.decides(view_of(1, {&first, &second})));
  EXPECT_FALSE(stranger.decides(view_of(1, {&stranger, &stranger})));
  Register other;
  other.found(run);
  EXPECT_FALSE(other.decides(view_of(1, {&first, &second})));
  EXPECT_EQ(read_card(view_of(1, {&first, &second}).members[1].card), (DoorAddress{{"10.0.0.7"}, 4711}));
}

TEST(Cards, OfOneHostSayNothingToOthers) {
  const auto view = [](const std::string& first, const std::string& second) {
    return comm::View{.epoch = 2, .members = {{10, first, true}, {11, second, false}}, .step = 7};
  };
  const std::string here = make_card(4711, {kThisHost}, false, ""),
                    there = make_card(4711, {"10.0.0.7"}, false, "");
  EXPECT_FALSE(can_be_asked(view(there, here), here)) << "its host is not known";
  EXPECT_TRUE(can_be_asked(view(there, there), there));
  EXPECT_TRUE(can_be_asked(view(here, there), there));
  EXPECT_TRUE(can_be_asked(view(here, here), here)) << "where the first is, too";
}

TEST_F(Registers, OfADirectoryDecideWhereALauncherHasNotStartedAllMembers) {
  setenv(kReportsVariable, "1000", 1), setenv(kRegisterVariable, "abcd", 1);
  Register launched, other;
  unsetenv(kReportsVariable), unsetenv(kRegisterVariable);
  EXPECT_TRUE(launched.decides(view_of(1, {&launched, &other})));
  EXPECT_FALSE(launched.decides(view_of(1, {&launched, &first})));
  ASSERT_TRUE(launched.enter(run, first.name()) && other.enter(run, first.name()));
  const comm::View all = view_of(1, {&launched, &other}), mixed = view_of(1, {&launched, &first});
  EXPECT_TRUE(launched.decides(all) && launched.decides(mixed) && first.decides(mixed));
  const comm::View next = view_of(2, {&launched});
  EXPECT_EQ(launched.claim(mixed, next), next);
  EXPECT_EQ(first.claim(mixed, view_of(2, {&first})), next);
  EXPECT_EQ(read_card(mixed.members[0].card), (DoorAddress{{"10.0.0.7"}, 4711}));
}

TEST_F(Registers, AreEnteredByThoseWhoSeeThem) {
  EXPECT_FALSE(stranger.enter(place.path() / "elsewhere", first.name()));
  EXPECT_FALSE(stranger.enter(run, "../../membership"));
  EXPECT_FALSE(stranger.enter(run, ""));
  EXPECT_EQ(stranger.words(), "");
  EXPECT_EQ(Register().found("/proc/nowhere"), "");
}

TEST_F(Registers, KeepTheFirstOfManyClaimsAtOnce) {
  constexpr int kClaims = 8, kEpochs = 20;
  std::vector<std::optional<comm::View>> kept(kClaims);
  const comm::View now = view_of(1, {&first, &second});
  for (uint32_t epoch = 2; epoch < 2 + kEpochs; ++epoch) {
    std::vector<std::thread> members;
    for (int i = 0; i < kClaims; ++i)
      members.emplace_back([&, i] {
        comm::View v = view_of(epoch, {&first, &second});
        v.step = i;
        kept[size_t(i)] = (i % 2 ? first : second).claim(now, v);
      });
    for (std::thread& t : members) t.join();
    for (const auto& k : kept) {
      ASSERT_TRUE(k);
      EXPECT_EQ(*k, *kept[0]);
      EXPECT_EQ(k->epoch, epoch);
    }
  }
  for (const fs::directory_entry& f : fs::recursive_directory_iterator(run))
    EXPECT_NE(f.path().filename().string()[0], '.') << f.path() << " is left";
}

TEST_F(Registers, WithoutTheirDirectoryDoNotAnswer) {
  const comm::View now = view_of(1, {&first, &second}), v = view_of(2, {&first, &second});
  ASSERT_EQ(first.claim(now, v), v);
  write_file(run / "membership" / first.name() / "epoch-3", "not a view");
  EXPECT_FALSE(first.claim(v, view_of(3, {&first, &second})));
  first.remove();
  EXPECT_FALSE(fs::exists(run / "membership"));
  EXPECT_FALSE(second.claim(now, v));
  EXPECT_FALSE(fs::exists(run)) << "it made the run's directory, in which there is nothing";
}

TEST_F(Registers, OnAFullDiskKeepNothingUntilThereIsSpace) {
  const comm::View now = view_of(1, {&first, &second}), v = view_of(2, {&first});
  std::string why;
  {
    const testing::SmallDisk full(4);
    why = testing::message_of<FileError>([&] { (void)first.claim(now, v); });
  }
  EXPECT_TRUE(why.starts_with((run / "membership" / first.name()).string())) << why;
  EXPECT_TRUE(testing::has(why, "cannot write: File too large")) << why;
  const auto files = fs::directory_iterator(run / "membership" / first.name());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "only that the register is here";
  const comm::View other = view_of(2, {&second});
  EXPECT_EQ(second.claim(now, other), other);
  EXPECT_EQ(first.claim(now, v), other) << "what could not be kept is no claim";
}

TEST_F(Registers, AreRemovedByAnyMemberWithTheDirectoriesThatTheirFounderHasMade) {
  second.remove();
  EXPECT_FALSE(fs::exists(run));
  EXPECT_TRUE(fs::exists(place.path()));
  fs::create_directory(run);
  Register founder, member;
  ASSERT_TRUE(member.enter(run, founder.found(run)));
  member.remove();
  EXPECT_TRUE(fs::is_empty(run)) << "it was there before";
  founder.found(run / "deeper" / "still");
  write_file(run / "deeper" / "of-others", "");
  founder.remove();
  EXPECT_TRUE(fs::exists(run / "deeper" / "of-others"));
  EXPECT_FALSE(fs::exists(run / "deeper" / "still"));
}

}  // namespace
}  // namespace skein::apps
