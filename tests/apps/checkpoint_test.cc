// Checkpoints: round trips, damage, full disks, retirement, and what a resume refuses.
#include "apps/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/base/digest.h"
#include "apps/base/json.h"
#include "engine/random.h"
#include "engine/vectors/vec.h"
#include "tests/support/files.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;
using testing::flip_byte;
using testing::has;
using testing::message_of;
using testing::ScratchDir;
using testing::slurp;
using testing::SmallDisk;
using testing::spill;

// A rank's state with fields of every kind.
struct State {
  Tensor x = Tensor::zeros({100}), counts = Tensor::of<int64_t>({2}, {0, 0});
  int64_t clock = 0;
  double weight = 0;
  std::string letters;

  void visit(Archive& a) {
    a("x", x);
    Under mine(a, "strategy.");
    mine("counts", counts);
    mine("clock", clock);
    mine("weight", weight);
    mine("letters", letters);
  }
  Walk walk() {
    return [this](Archive& a) { visit(a); };
  }
  bool operator==(const State& o) const {
    return memcmp(x.raw(), o.x.raw(), size_t(x.bytes())) == 0 &&
           memcmp(counts.raw(), o.counts.raw(), size_t(counts.bytes())) == 0 && clock == o.clock &&
           memcmp(&weight, &o.weight, sizeof weight) == 0 && letters == o.letters;
  }
};

State some_state(uint64_t which) {
  State s;
  fill_normal(s.x, {.seed = 1, .purpose = Purpose::kTest, .step = which}, 0, 1);
  s.counts.data<int64_t>()[1] = INT64_MAX - int64_t(which);
  s.clock = -int64_t(which);
  s.weight = 1.0 / (3.0 + double(which));
  s.letters = std::string("\0\xff in flight ", 12) + std::to_string(which);
  return s;
}

Identity identity(int world = 1) {
  return {.model = "mlp",
          .layout = "abc",
          .algorithm = "sgd",
          .world = world,
          .data = "mnist",
          .seed = 5,
          .global_batch = 64};
}

std::string saved(const ScratchDir& dir, int64_t step) {
  State s = some_state(uint64_t(step));
  return Checkpoints(dir.path()).save(step, identity(), s.walk());
}

std::vector<std::string> hidden_files(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& e : fs::recursive_directory_iterator(dir))
    if (const std::string n = e.path().filename().string();
        n.starts_with(".") || has(n, ".partial") || has(n, ".sum"))
      names.push_back(n);
  return names;
}

TEST(Checkpoint, RoundTripKeepsEveryBit) {
  const ScratchDir dir;
  for (double weight : {0.1, -0.0, 1e-310, double(INFINITY), double(NAN), 1.0 + 0x1p-52}) {
    State s = some_state(3), back;
    s.weight = weight;
    const std::string path = Checkpoints(dir.path()).save(3, identity(), s.walk());
    EXPECT_EQ(path, dir / "checkpoints/step-00000003");
    const Manifest m = load_checkpoint(path, 0, identity(), back.walk());
    EXPECT_EQ(m.step, 3);
    if (std::isnan(weight)) back.weight = weight;  // all NaNs count as equal
    EXPECT_TRUE(s == back) << weight;
  }
  EXPECT_TRUE(hidden_files(dir.path()).empty());
}

TEST(Checkpoint, LoadingWritesInPlace) {
  const ScratchDir dir;
  const std::string path = saved(dir, 1);
  State back;
  const Tensor window = back.x.view({10}, 5);
  load_checkpoint(path, 0, identity(), back.walk());
  EXPECT_EQ(window.data<float>()[0], some_state(1).x.data<float>()[5]);
}

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
  const std::string path = Checkpoints(dir.path()).save(10, identity(), other.walk());
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

TEST(Checkpoint, EveryByteOfTheManifestIsGuarded) {
  const ScratchDir dir;
  const std::string path = saved(dir, 10), file = path + "/manifest.json";
  const std::string whole = slurp(file);
  const Manifest m = read_manifest(path);
  for (size_t i = 0; i < whole.size(); ++i) {
    flip_byte(file, i);
    try {
      const Manifest n = read_manifest(path);  // white space may differ, nothing else
      EXPECT_EQ(n.step, m.step);
      EXPECT_EQ(n.sums, m.sums);
      EXPECT_EQ(n.identity.model + n.identity.layout, m.identity.model + m.identity.layout) << i;
    } catch (const BadFile&) {}
    if (i + 1 == whole.size()) break;  // the last byte ends the line
    spill(file, whole.substr(0, i));
    EXPECT_THROW(read_manifest(path), BadFile) << i;
    spill(file, whole);
  }
}

// Whoever can write a manifest can also write its checksum.
TEST(Checkpoint, AForgedManifestIsRefused) {
  const ScratchDir dir;
  const std::string path = saved(dir, 10), file = path + "/manifest.json";
  Json good = Json::parse(slurp(file));
  good.erase("blake2b");
  const auto refused = [&](const std::function<void(Json&)>& change) {
    Json j = good;
    change(j);
    Digest sum;
    const std::string all = j.dump();
    sum.add(all.data(), all.size());
    j["blake2b"] = sum.hex();
    spill(file, j.dump());
    try {
      read_manifest(path);
      return false;
    } catch (const BadFile& e) { return has(e.what(), file + ": damaged: not a whole manifest"); }
  };
  EXPECT_FALSE(refused([](Json&) {}));
  for (const Json& step : {Json(3e22), Json(-1), Json(10.5), Json(UINT64_MAX), Json("10"), Json(true)})
    EXPECT_TRUE(refused([&](Json& j) { j["step"] = step; })) << step;
  for (const char* key : {"world", "global_batch", "seed"})
    EXPECT_TRUE(refused([&](Json& j) { j[key] = -1; })) << key;
  EXPECT_TRUE(refused([](Json& j) { j["world"] = 2; }));
  EXPECT_TRUE(refused([](Json& j) { j["files"] = Json::array(); }));
  EXPECT_TRUE(refused([](Json& j) { j["files"][0]["name"] = "../step-00000010/rank-0000.safetensors"; }));
  spill(file, "{\"blake2b\":\"x\",\"a\":" + std::string(200000, '[') + std::string(200000, ']') + "}");
  EXPECT_THROW(read_manifest(path), BadFile);
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

TEST(Checkpoint, AnotherRunIsRefusedSayingWhatDiffers) {
  const ScratchDir dir;
  const std::string path = saved(dir, 10);
  State back;
  const auto refused = [&](auto change) {
    Identity run = identity();
    change(run);
    return message_of<BadFile>([&] { load_checkpoint(path, 0, run, back.walk()); });
  };
  const std::string model = refused([](Identity& i) { i.model = "cnn7"; });
  EXPECT_TRUE(has(model, "--model mlp") && has(model, "cnn7")) << model;
  EXPECT_TRUE(has(refused([](Identity& i) { i.world = 2; }), "--workers 1"));
  EXPECT_TRUE(has(refused([](Identity& i) { i.algorithm = "sgp"; }), "--algorithm sgd"));
  EXPECT_TRUE(has(refused([](Identity& i) { i.data = "cifar10"; }), "--data mnist"));
  EXPECT_TRUE(has(refused([](Identity& i) { i.seed = 6; }), "--seed 5"));
  EXPECT_TRUE(has(refused([](Identity& i) { i.layout = "abd"; }), "other parameters"));
  EXPECT_TRUE(has(refused([](Identity& i) { i.global_batch = 32; }), "--batch-size 64"));
  EXPECT_TRUE(back == State());
}

TEST(Checkpoint, FieldsThatDoNotMatchAreNamed) {
  const ScratchDir dir;
  const std::string path = saved(dir, 10);
  const auto refused = [&](const Walk& walk) {
    return message_of<BadFile>([&] { load_checkpoint(path, 0, identity(), walk); });
  };
  State s;
  int64_t more = 0;
  EXPECT_TRUE(has(refused([&](Archive& a) { s.visit(a), a("rule.t", more); }), "lacks the field 'rule.t'"));
  EXPECT_TRUE(has(refused([&](Archive& a) { a("x", s.x); }), "which this run does not read"));
  Tensor shorter({99});
  EXPECT_TRUE(has(refused([&](Archive& a) { a("x", shorter); }), "f32 [100] there and f32 [99]"));
  EXPECT_TRUE(has(refused([&](Archive& a) { a("strategy.weight", more); }), "not a number of the kind int"));
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
  const std::string m = message_of<BadFile>([&] { Checkpoints(dir / "file").save(1, identity(), s.walk()); });
  EXPECT_TRUE(has(m, dir / "file") && has(m, "another --output")) << m;
  EXPECT_THROW(Checkpoints("/proc/skein").save(1, identity(), s.walk()), BadFile);
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
