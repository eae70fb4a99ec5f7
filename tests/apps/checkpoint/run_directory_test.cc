// The directory of a run: which run has it, for how long, and what is left of one that never began.
#include "apps/checkpoint/run_directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/files.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;
using testing::has;
using testing::message_of;
using testing::ScratchDir;
using testing::spill;

void hold(RunDirectory& d, const std::string& path) {
  d.hold(path, 0, [](const std::string&) {});
}

TEST(RunDirectory, IsHeldByOneAtATime) {
  const ScratchDir dir;
  auto first = std::make_unique<RunDirectory>(0);
  hold(*first, dir / "run");
  spill(dir / "run/metrics.jsonl", "{}\n");
  RunDirectory second(0);
  const std::string why = message_of<BadFile>([&] { hold(second, dir / "run"); });
  EXPECT_TRUE(has(why, text("is being trained by process ", getpid(), " on host "))) << why;
  EXPECT_EQ(message_of<BadFile>([&] { hold(*std::make_unique<RunDirectory>(0), dir / "run"); }), why)
      << "being refused leaves no trace";
  first.reset();
  hold(second, dir / "run");
}

// Worker 0 may be dead while the others still write the checkpoint of the survivors.
TEST(RunDirectory, IsHeldUntilTheLastWorkerHasEnded) {
  const ScratchDir dir;
  auto zero = std::make_unique<RunDirectory>(0), one = std::make_unique<RunDirectory>(1),
       two = std::make_unique<RunDirectory>(2);
  hold(*zero, dir / "run");
  spill(dir / "run/metrics.jsonl", "{}\n");
  one->join(dir / "run");
  two->join(dir / "run");
  zero.reset();
  RunDirectory next(0);
  message_of<BadFile>([&] { hold(next, dir / "run"); });
  one.reset();
  message_of<BadFile>([&] { hold(next, dir / "run"); });
  two.reset();
  hold(next, dir / "run");
}

TEST(RunDirectory, OfAnotherHostThatDidNotSayItEndedIsReportedAndDoesNotBlock) {
  const ScratchDir dir;
  fs::create_directory(dir / "run");
  spill(dir / "run/metrics.jsonl", "{}\n");
  spill(dir / "run/.skein-lock", "host far.away pid 4711 since 99\n");
  std::string said;
  {
    RunDirectory d(0);
    d.hold(dir / "run", 0, [&](const std::string& line) { said += line; });
  }
  EXPECT_TRUE(has(said, "process 4711 on host far.away")) << said;
  RunDirectory again(0);
  again.hold(dir / "run", 0, [](const std::string& line) { ADD_FAILURE() << line; });
}

TEST(RunDirectory, OfItsOwnNameIsMadeAnewEachTime) {
  const ScratchDir dir;
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  {
    RunDirectory a(0), b(0);
    a.make("mlp", "mnist:somewhere");
    b.make("mlp", "mnist:somewhere");
    EXPECT_NE(a.path(), b.path());
    EXPECT_EQ(a.path().rfind("runs/mlp-mnist-", 0), 0u) << a.path();
    EXPECT_TRUE(has(a.path(), text('-', getpid()))) << a.path();
  }
  EXPECT_FALSE(fs::exists("runs")) << "no run began";
  fs::current_path(before);
}

TEST(RunDirectory, ThatNeverBecameARunIsRemovedButNothingElse) {
  const ScratchDir dir;
  fs::create_directory(dir / "there");
  spill(dir / "there/mine", "x");
  {
    RunDirectory made(0), given(0);
    hold(made, dir / "new/run");
    hold(given, dir / "there");
  }
  EXPECT_FALSE(fs::exists(dir / "new"));
  EXPECT_TRUE(fs::exists(dir / "there/mine"));
  EXPECT_FALSE(fs::exists(dir / "there/.skein-lock"));
  {
    RunDirectory run(0);
    hold(run, dir / "new/run");
    spill(dir / "new/run/metrics.jsonl", "{}\n");
  }
  EXPECT_TRUE(fs::exists(dir / "new/run/metrics.jsonl"));
}

TEST(RunDirectory, NamesTheWaysOutWhereARunIs) {
  const ScratchDir dir;
  spill(dir / "metrics.jsonl", "{}\n");
  const std::string why = message_of<BadOption>([&] { refuse_a_run(dir.path()); });
  for (const char* way : {"another directory", "--resume", "rm -r"}) EXPECT_TRUE(has(why, way)) << why;
  fs::create_directory(dir / "my run");
  spill(dir / "my run/metrics.jsonl", "{}\n");
  const std::string quoted = message_of<BadOption>([&] { refuse_a_run(dir / "my run"); });
  EXPECT_TRUE(has(quoted, "--resume '" + (dir / "my run") + "'")) << quoted;
  EXPECT_TRUE(has(quoted, "rm -r '" + (dir / "my run") + "'")) << quoted;
}

}  // namespace
}  // namespace skein::apps
