// Checkpoints: damage, full disks, retirement.
#include "apps/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "tests/support/checkpoints.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;
using testing::flip_byte;
using testing::has;
using testing::message_of;
using testing::SmallDisk;
using testing::spill;

TEST(Checkpoint, RanksSaveTogether) {
  const ScratchDir dir;
  Checkpoints store(dir.path());
  store.begin(7);
  std::vector<std::thread> ranks;
  for (int r = 0; r < 4; ++r)
    ranks.emplace_back([&, r] {
      State s = some_state(uint64_t(r));
      Checkpoints(dir.path()).write(7, r, s.walk());
    });
  for (std::thread& t : ranks) t.join();
  EXPECT_TRUE(list_checkpoints(dir.path()).empty()) << "visible before it is whole";
  const std::string path = store.commit(7, identity(4));
  verify_checkpoint(path);
  for (int r = 0; r < 4; ++r) {
    State back;
    load_checkpoint(path, r, identity(4), back.walk());
    EXPECT_TRUE(back == some_state(uint64_t(r))) << r;
  }
  EXPECT_TRUE(hidden_files(dir.path()).empty());
}

TEST(Checkpoint, ARankThatWroteElsewhereIsNamed) {
  const ScratchDir dir;
  Checkpoints store(dir.path());
  State s = some_state(0);
  store.begin(7);
  store.write(7, 0, s.walk());
  const std::string m = message_of<BadFile>([&] { store.commit(7, identity(2)); });
  EXPECT_TRUE(has(m, "worker 1")) << m;
  store.abandon(7);
  EXPECT_TRUE(fs::is_empty(dir / "checkpoints"));
}

TEST(Checkpoint, KeepsTheNewestThree) {
  const ScratchDir dir;
  for (int64_t step : {10, 20, 30, 40, 50}) saved(dir, step);
  const std::string base = dir / "checkpoints/step-000000";
  EXPECT_EQ(list_checkpoints(dir.path()), (std::vector{base + "30", base + "40", base + "50"}));
  EXPECT_EQ(find_checkpoint(dir.path()), base + "50");
  EXPECT_EQ(find_checkpoint(dir / "checkpoints/"), base + "50");
  EXPECT_EQ(find_checkpoint(base + "40/"), base + "40");
}

TEST(Checkpoint, ResumingEarlierRetiresTheLaterCourse) {
  const ScratchDir dir;
  for (int64_t step : {10, 20, 30}) saved(dir, step);
  saved(dir, 15);
  const std::string base = dir / "checkpoints/step-000000";
  EXPECT_EQ(list_checkpoints(dir.path()), (std::vector{base + "10", base + "15"}));
}

TEST(Checkpoint, TheSameStepIsReplaced) {
  const ScratchDir dir;
  saved(dir, 10);
  State other = some_state(99), back;
  const std::string path = save(dir.path(), 10, other);
  load_checkpoint(path, 0, identity(), back.walk());
  EXPECT_TRUE(back == other);
  EXPECT_TRUE(hidden_files(dir.path()).empty());
}

// A worker that was given up while it wrote, and wakes later, does not interfere with the next attempt.
TEST(Checkpoint, AnotherAttemptIsOutOfReachOfTheLast) {
  const ScratchDir dir;
  State late = some_state(1), good = some_state(2), back;
  Checkpoints woken(dir.path()), left(dir.path());
  woken.begin(10);
  left.attempt(1);
  left.begin(10);
  left.write(10, 0, good.walk());
  EXPECT_THROW(woken.write(10, 0, late.walk()), BadFile);
  const std::string path = left.commit(10, identity());
  load_checkpoint(path, 0, identity(), back.walk());
  EXPECT_TRUE(back == good);
  EXPECT_TRUE(hidden_files(dir.path()).empty());
}

// At whatever point it was stopped: what the others have begun or finished meanwhile stays.
TEST(Checkpoint, WhoWakesInAnEarlierAttemptTakesNothingFromLaterOnes) {
  const ScratchDir dir;
  State late = some_state(1), good = some_state(2);
  Checkpoints woken(dir.path()), left(dir.path());
  left.attempt(1);
  left.begin(20);
  woken.begin(10);
  woken.write(10, 0, late.walk());
  EXPECT_FALSE(woken.is_taken_away(10));
  left.write(20, 0, good.walk());
  const std::string later = left.commit(20, identity());
  woken.commit(10, identity());
  EXPECT_EQ(list_checkpoints(dir.path()).back(), later);
  woken.begin(11);
  left.begin(21);
  EXPECT_TRUE(woken.is_taken_away(11));
  left.abandon(21);
  EXPECT_TRUE(hidden_files(dir.path()).empty());
}

TEST(Checkpoint, LeftoversOfAnEarlierRunGoWhateverTheirNumber) {
  const ScratchDir dir;
  Checkpoints crashed(dir.path());
  crashed.attempt(7);
  crashed.begin(30);
  saved(dir, 10);
  EXPECT_TRUE(hidden_files(dir.path()).empty());
}

TEST(Checkpoint, ADamagedFileIsNamedWithTheLastGoodCheckpoint) {
  const ScratchDir dir;
  const std::string good = saved(dir, 10), worse = saved(dir, 20), bad = saved(dir, 30);
  const std::string file = bad + "/rank-0000.safetensors";
  flip_byte(worse + "/rank-0000.safetensors", 300);
  flip_byte(file, fs::file_size(file) - 1);
  State untouched;
  for (const auto& attempt :
       {std::function<void()>([&] { verify_checkpoint(bad); }),
        std::function<void()>([&] { load_checkpoint(bad, 0, identity(), untouched.walk()); })}) {
    const std::string m = message_of<BadFile>(attempt);
    EXPECT_TRUE(has(m, file + ": damaged")) << m;
    EXPECT_TRUE(has(m, "--resume " + good)) << m;
  }
  EXPECT_TRUE(untouched == State());
}

TEST(Checkpoint, FilesThatAreNoneDoNotHoldItUp) {
  const ScratchDir dir;
  const std::string path = saved(dir, 10);
  State back;
  for (const char* name : {"/rank-0000.safetensors", "/manifest.json"}) {
    fs::rename(path + name, path + ".kept");
    ASSERT_EQ(::mkfifo((path + name).c_str(), 0600), 0);
    const std::string m = message_of<BadFile>([&] { load_checkpoint(path, 0, identity(), back.walk()); });
    EXPECT_TRUE(has(m, path + name + ": cannot open this file: it is a pipe")) << m;
    fs::remove(path + name);
    fs::rename(path + ".kept", path + name);
  }
}

TEST(Checkpoint, TruncatedAndMissingFilesAreRefused) {
  const ScratchDir dir;
  const std::string path = saved(dir, 10), file = path + "/rank-0000.safetensors";
  State back;
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_TRUE(
      has(message_of<BadFile>([&] { load_checkpoint(path, 0, identity(), back.walk()); }), "no other good"));
  fs::remove(file);
  EXPECT_TRUE(has(message_of<BadFile>([&] { load_checkpoint(path, 0, identity(), back.walk()); }), file));
  EXPECT_THROW(find_checkpoint(dir / "nowhere"), BadFile);
  EXPECT_TRUE(has(message_of<BadFile>([&] { find_checkpoint("/proc/self"); }), "no run in it"));
}

TEST(Checkpoint, AFullDiskLeavesTheOldOnesAndNoPieces) {
  const ScratchDir dir;
  const std::string path = saved(dir, 10);
  for (rlim_t bytes : {rlim_t(0), rlim_t(100), rlim_t(700)}) {
    const SmallDisk disk(bytes);
    const std::string m = message_of<BadFile>([&] { saved(dir, 20); });
    EXPECT_TRUE(has(m, "cannot write")) << m;
  }
  EXPECT_EQ(list_checkpoints(dir.path()), std::vector{path});
  verify_checkpoint(path);
  EXPECT_TRUE(hidden_files(dir.path()).empty());
}

TEST(Checkpoint, ADirectoryThatCannotBeIsNamedWithAdvice) {
  const ScratchDir dir;
  spill(dir / "file", "x");
  State s = some_state(1);
  const std::string m = message_of<BadFile>([&] { save(dir / "file", 1, s); });
  EXPECT_TRUE(has(m, dir / "file") && has(m, "another --output")) << m;
  EXPECT_THROW(save("/proc/skein", 1, s), BadFile);
}

TEST(Checkpoint, WhatACrashLeftIsSweptAndNeverLoaded) {
  const ScratchDir dir;
  const std::string path = saved(dir, 10);
  fs::create_directories(dir / "checkpoints/.step-00000020.partial");
  spill(dir / "checkpoints/.step-00000020.partial/rank-0000.safetensors", "half");
  fs::create_directories(dir / "checkpoints/step-00000030");  // no manifest: not finished
  EXPECT_EQ(find_checkpoint(dir.path()), path);
  saved(dir, 11);
  EXPECT_TRUE(hidden_files(dir.path()).empty());
}

}  // namespace
}  // namespace skein::apps
