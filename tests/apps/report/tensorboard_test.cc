// Events for TensorBoard: checksums, frames and fields, and what TensorBoard itself reads.
#include "apps/report/tensorboard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/files.h"
#include "tests/support/program.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;
using testing::has;
using testing::message_of;
using testing::ScratchDir;
using testing::slurp;
using testing::spill;
using testing_programs::Workplace;

template <class T>
T number_at(const std::string& bytes, size_t at) {
  T v;
  std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}

std::vector<std::string> event_files(const fs::path& dir) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(dir))
    if (has(entry.path().filename(), "tfevents")) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// The records of a file, whose frames must be whole.
std::vector<std::string> records_in(const std::string& path) {
  const std::string bytes = slurp(path);
  std::vector<std::string> records;
  for (size_t at = 0; at < bytes.size();) {
    const auto length = number_at<uint64_t>(bytes, at);
    records.push_back(bytes.substr(at + 12, length));
    const std::string again = framed(records.back());
    EXPECT_EQ(bytes.substr(at, again.size()), again);
    at += again.size();
  }
  return records;
}

StepEvent loss_event(int64_t step) {
  StepEvent e;
  e.step = step, e.epoch = double(step) / 100, e.loss = 1 / double(step), e.learning_rate = 0.25;
  return e;
}

TEST(Tensorboard, AFileBeginsWithItsVersionAndTheFirstStep) {
  const ScratchDir dir;
  { Tensorboard board(dir.path(), 99); }
  ASSERT_EQ(event_files(dir.path()).size(), 1u);
  const auto records = records_in(event_files(dir.path())[0]);
  ASSERT_EQ(records.size(), 2u);
  // wall_time, step 0, file_version; wall_time, step 100, session_log {status: START}
  EXPECT_EQ(records[0].substr(9), std::string("\x10\0\x1a\x0d"
                                              "brain.Event:2",
                                              17));
  EXPECT_EQ(records[1].substr(9), std::string("\x10\x64\x3a\x02\x08\x01"));
  EXPECT_EQ(records[0][0], '\x09');
  EXPECT_GT(number_at<double>(records[0], 1), 1.7e9);
}

TEST(Tensorboard, AScalarIsTagAndValue) {
  const ScratchDir dir;
  {
    EventFile file(dir.path(), 0);
    file.write(300, {{"a/b", 0.5}});
  }
  const auto records = records_in(event_files(dir.path())[0]);
  EXPECT_EQ(records.at(2).substr(9), std::string("\x10\xac\x02\x2a\x0c\x0a\x0a\x0a\x03"
                                                 "a/b\x15\0\0\0\x3f",
                                                 17));
}

TEST(Tensorboard, ALaterFileHasALaterName) {
  const ScratchDir dir;
  spill(dir / "events.out.tfevents.2999999999.elsewhere.1.0", "");  // from a host whose clock is wrong
  const EventFile a(dir.path(), 0), b(dir.path(), 0);
  EXPECT_LT(dir / "events.out.tfevents.2999999999.elsewhere.1.0", a.path());
  EXPECT_LT(a.path(), b.path());
}

TEST(Tensorboard, AnImpossibleDirectoryIsNamed) {
  const ScratchDir dir;
  const std::string message = message_of<BadFile>([&] { Tensorboard board(dir / "nowhere"); });
  EXPECT_TRUE(has(message, dir / "nowhere") && has(message, "--no-tensorboard")) << message;
}

// A Python that has TensorBoard; empty if there is none.
std::string python() {
  for (const std::string& name :
       {std::string(SKEIN_SOURCE_DIR "/build/python/bin/python"), std::string("python3")})
    if (std::system((name + " -c 'import tensorboard' >/dev/null 2>&1").c_str()) == 0) return name;
  return "";
}

class ByTensorboard : public ::testing::Test {
 protected:
  void SetUp() override {
    if (python().empty()) GTEST_SKIP() << "no Python with tensorboard; scripts/install --test makes one";
  }
  static Json read(const std::string& dir, const ScratchDir& scratch) {
    const std::string command = python() + " " SKEIN_SOURCE_DIR "/tests/read_events.py " + dir + " >" +
                                scratch / "json" + " 2>" + scratch / "log";
    EXPECT_EQ(std::system(command.c_str()), 0) << slurp(scratch / "log");
    return Json::parse(slurp(scratch / "json"));
  }
};

TEST_F(ByTensorboard, EveryScalarAndTheConfigurationAreRead) {
  const ScratchDir dir, scratch;
  {
    Tensorboard board(dir.path());
    board.write(RunEvent{.config = {{"model", "mlp"}, {"lr", 0.5}}});
    StepEvent s = loss_event(20);
    s.loss = Spread(2, 1.5, 2.5), s.bytes = 1e9, s.top1 = NAN;
    board.write(s);
    EvalEvent e;
    e.step = 20, e.top1 = 91.25, e.loss = 0.25, e.consensus_distance = 0.125, e.ema_top1 = 92.5;
    board.write(e);
  }
  const Json seen = read(dir.path(), scratch), &scalars = seen["scalars"];
  EXPECT_EQ(scalars["train/loss"], Json::parse("[[20, 2.0]]"));
  EXPECT_EQ(scalars["train/top1"], Json::parse("[[20, null]]"));  // NaN
  EXPECT_EQ(scalars["spread/train/loss_max"], Json::parse("[[20, 2.5]]"));
  EXPECT_EQ(scalars["train/learning_rate"], Json::parse("[[20, 0.25]]"));
  EXPECT_EQ(scalars["speed/bytes_sent"], Json::parse("[[20, 1e9]]"));
  EXPECT_EQ(scalars["eval/top1"], Json::parse("[[20, 91.25]]"));
  EXPECT_EQ(scalars["eval/consensus_distance"], Json::parse("[[20, 0.125]]"));
  EXPECT_EQ(scalars["eval/ema_top1"], Json::parse("[[20, 92.5]]"));
  EXPECT_TRUE(has(seen["texts"]["run"][0], "| model | mlp |")) << seen["texts"];
}

TEST_F(ByTensorboard, AResumedRunTakesTheStepsAfterItsCheckpointAgain) {
  const ScratchDir dir, scratch;
  {
    Tensorboard board(dir.path());
    for (int64_t k : {10, 20, 30, 40}) board.write(loss_event(k));
  }
  {
    Tensorboard board(dir.path(), 20);
    for (int64_t k : {25, 35}) board.write(loss_event(k));
  }
  std::vector<int64_t> steps;
  const Json seen = read(dir.path(), scratch);
  for (const Json& pair : seen["scalars"]["train/loss"]) steps.push_back(pair[0]);
  EXPECT_EQ(steps, (std::vector<int64_t>{10, 20, 25, 35}));
}

constexpr const char* kTiny =
    "$TRAIN --data synthetic:8x8x1,classes=3,train=64,test=30 --model mlp --batch-size 16 ";

TEST(TensorboardOfARun, IsInItsDirectoryAndGrowsByAFileAResume) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--steps 4 --log-every 2 --output a").status, 0);
  ASSERT_EQ(event_files(w.path() / "a").size(), 1u);
  const auto records = records_in(event_files(w.path() / "a")[0]);
  EXPECT_EQ(std::count_if(records.begin(), records.end(), [](auto& r) { return has(r, "train/loss"); }), 2);
  EXPECT_EQ(std::count_if(records.begin(), records.end(), [](auto& r) { return has(r, "eval/top1"); }), 1);
  ASSERT_EQ(w.run("$TRAIN --resume a --steps 8").status, 0);
  EXPECT_EQ(event_files(w.path() / "a").size(), 2u);
}

TEST(TensorboardOfARun, CanBeLeftOut) {
  const Workplace w;
  ASSERT_EQ(w.run(std::string(kTiny) + "--steps 4 --output a --no-tensorboard").status, 0);
  EXPECT_TRUE(event_files(w.path() / "a").empty());
}

}  // namespace
}  // namespace skein::apps
