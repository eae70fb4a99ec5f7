// The progress line and the lines of the log, on terminals and elsewhere.
#include "apps/report/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <map>
#include <thread>

#include "tests/support/files.h"

namespace skein::apps {
namespace {

using testing::has;
using testing::ScratchDir;
using testing::slurp;

TEST(Progress, SpeedsBelowAHundredHaveADecimal) {
  EXPECT_EQ(format_speed(1234.4), "1234");
  EXPECT_EQ(format_speed(100), "100");
  EXPECT_EQ(format_speed(99.97), "100");
  EXPECT_EQ(format_speed(9.86), "9.9");
  EXPECT_EQ(format_speed(NAN), "-");
}

TEST(Progress, DurationsReadLikeClocks) {
  EXPECT_EQ(format_duration(7), "0:07");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(751), "12:31");
  EXPECT_EQ(format_duration(11100), "3:05:00");
  EXPECT_EQ(format_duration(2 * 86400 + 4 * 3600 + 5), "2 d 4 h");
  EXPECT_EQ(format_duration(-1), "-");
  EXPECT_EQ(format_duration(NAN), "-");
}

TEST(Progress, BytesHaveThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1.0777e6), "1.08 MB");
  EXPECT_EQ(format_bytes(999.6e6), "1 GB");
}

const Moment kMoment{.epoch = 2.96,
                     .epochs = 10,
                     .step = 1200,
                     .steps = 9380,
                     .loss = 0.43211,
                     .top1 = 84.46,
                     .images_per_second = 12345.4,
                     .data_wait = 0.012,
                     .peer_wait = 0.04,
                     .workers = 4,
                     .seconds_left = 151};

TEST(Progress, TheLineSaysItAll) {
  EXPECT_EQ(format_moment(kMoment),
            "epoch 3.0/10  step 1200/9380  loss 0.4321  top-1 84.5 %  12345 images/s  data 1 %  peers 4 %  "
            "eta 2:31");
  Moment alone = kMoment;
  alone.workers = 1, alone.seconds_left = -1, alone.loss = NAN;
  EXPECT_EQ(format_moment(alone), "epoch 3.0/10  step 1200/9380  top-1 84.5 %  12345 images/s  data 1 %");
  alone.top1 = alone.images_per_second = NAN;
  EXPECT_EQ(format_moment(alone), "epoch 3.0/10  step 1200/9380");
}

TEST(Progress, ANarrowLineKeepsWhatMattersMost) {
  for (int width = 0; width < 120; ++width) EXPECT_LE(int(format_moment(kMoment, width).size()), width);
  EXPECT_EQ(format_moment(kMoment, 40), "epoch 3.0/10  loss 0.4321  top-1 84.5 %");
  EXPECT_EQ(format_moment(kMoment, 12), "loss 0.4321");
}

// What an endless terminal would show of these bytes.
std::vector<std::string> screen(const std::string& bytes) {
  std::vector<std::string> lines(1);
  size_t column = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\n')
      lines.emplace_back(), column = 0;
    else if (bytes[i] == '\r')
      column = 0;
    else if (bytes.compare(i, 3, "\x1b[K") == 0)
      lines.back().resize(column), i += 2;
    else
      lines.back().resize(std::max(lines.back().size(), column + 1)), lines.back()[column++] = bytes[i];
  }
  return lines;
}

std::string written(Showing how, const std::function<void(Progress&)>& use) {
  const ScratchDir dir;
  std::FILE* out = std::fopen((dir / "out").c_str(), "w");
  {
    Progress p(out, how, 0, 100);
    use(p);
  }
  std::fclose(out);
  return slurp(dir / "out");
}

TEST(Progress, LogLinesStandAboveTheLiveOne) {
  const std::string bytes = written(Showing::kLive, [](Progress& p) {
    p.say("first");
    p.show(kMoment);
    p.say("second");
    p.show(kMoment);
  });
  const auto lines = screen(bytes);
  ASSERT_EQ(lines.size(), 4u) << bytes;
  EXPECT_EQ(lines[0], "first");
  EXPECT_EQ(lines[1], "second");
  EXPECT_EQ(lines[2], format_moment(kMoment, 100));
  EXPECT_EQ(lines[3], "");
}

TEST(Progress, ThreadsNeverMixTheirLines) {
  const std::string bytes = written(Showing::kLive, [](Progress& p) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&p, t] {
        for (int i = 0; i < 50; ++i) t == 0 ? p.show(kMoment) : p.say(std::string(30, char('a' + t)));
      });
    for (std::thread& t : threads) t.join();
    p.show(kMoment);
  });
  const auto lines = screen(bytes);
  ASSERT_EQ(lines.size(), 152u);
  for (size_t i = 0; i < 150; ++i) EXPECT_EQ(lines[i], std::string(30, lines[i].at(0))) << i;
}

TEST(Progress, ElsewhereLinesArePlain) {
  const std::string bytes = written(Showing::kPlain, [](Progress& p) {
    p.show(kMoment);
    p.say("note");
    p.finish();
  });
  EXPECT_EQ(bytes, format_moment(kMoment) + "\nnote\n");
}

TEST(Progress, EndsWithoutFiguresOlderThanTheLastLine) {
  const std::string bytes = written(Showing::kLive, [](Progress& p) {
    p.show(kMoment);
    p.show(kMoment);  // too soon to be drawn, so it is kept for the end
    p.say("epoch 3");
  });
  EXPECT_EQ(screen(bytes), (std::vector<std::string>{"epoch 3", ""}));
}

// mpirun gives its processes a terminal and writes their output to a file.
TEST(Progress, IsLiveOnlyOnATerminalThatCanDoIt) {
  const int ours = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(ours, 0);
  ASSERT_TRUE(grantpt(ours) == 0 && unlockpt(ours) == 0);
  std::FILE *terminal = std::fopen(ptsname(ours), "w"), *file = std::tmpfile();
  ASSERT_TRUE(terminal && file);
  const std::vector<std::string> names = {"TERM", "NO_COLOR", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                          "PMIX_RANK"};
  const auto with = [&](const std::string& name, const std::string& value) {
    for (const std::string& n : names) unsetenv(n.c_str());
    setenv("TERM", "xterm", 1);
    setenv(name.c_str(), value.c_str(), 1);
  };
  with("TERM", "xterm");
  EXPECT_EQ(showing("auto", terminal), Showing::kLive);
  EXPECT_EQ(showing("auto", file), Showing::kPlain);
  EXPECT_EQ(showing("live", file), Showing::kLive);
  EXPECT_EQ(showing("plain", terminal), Showing::kPlain);
  EXPECT_EQ(showing("none", terminal), Showing::kNone);
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"TERM", "dumb"}, {"NO_COLOR", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"PMI_RANK", "1"}}) {
    with(name, value);
    EXPECT_EQ(showing("auto", terminal), Showing::kPlain) << name;
  }
  for (const std::string& n : names) unsetenv(n.c_str());
  std::fclose(terminal), std::fclose(file), close(ours);
}

TEST(Progress, NoneSaysOnlyWhatIsSaid) {
  const std::string bytes = written(Showing::kNone, [](Progress& p) {
    p.show(kMoment);
    p.say("note");
    p.finish();
  });
  EXPECT_EQ(bytes, "note\n");
}

TEST(Progress, PlainLinesAreRareAndTheLastStateIsNotLost) {
  const ScratchDir dir;
  std::FILE* out = std::fopen((dir / "out").c_str(), "w");
  {
    Progress p(out, Showing::kPlain, 3600);
    for (int64_t k = 0; k < 100; ++k) {
      Moment m = kMoment;
      m.step = k;
      p.show(m);
    }
  }
  std::fclose(out);
  const auto lines = screen(slurp(dir / "out"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(has(lines[0], "step 0/"));
  EXPECT_TRUE(has(lines[1], "step 99/"));
}

}  // namespace
}  // namespace skein::apps
