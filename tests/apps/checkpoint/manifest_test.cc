// The manifest of a checkpoint: every byte is guarded, and another run's is refused.
#include "apps/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/base/digest.h"
#include "apps/base/json.h"
#include "tests/support/checkpoints.h"

namespace skein::apps {
namespace {

using testing::flip_byte;
using testing::has;
using testing::message_of;
using testing::slurp;
using testing::spill;

TEST(Manifest, IsGuardedInEveryByte) {
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

// Those who can write a manifest can also write its checksum.
TEST(Manifest, IsRefusedWhenForged) {
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
  EXPECT_FALSE(refused([](Json& j) { j["shares"] = Json::array({64}); }));
  for (const Json& shares : {Json::array({63}), Json::array({64, 0}), Json::array({-64}), Json(64),
                             Json::array({"64"}), Json::array({UINT64_MAX})})
    EXPECT_TRUE(refused([&](Json& j) { j["shares"] = shares; })) << shares;
  EXPECT_TRUE(refused([](Json& j) { j["files"] = Json::array(); }));
  EXPECT_TRUE(refused([](Json& j) { j["files"][0]["name"] = "../step-00000010/rank-0000.safetensors"; }));
  spill(file, "{\"blake2b\":\"x\",\"a\":" + std::string(200000, '[') + std::string(200000, ']') + "}");
  EXPECT_THROW(read_manifest(path), BadFile);
}

TEST(Manifest, OfAnotherRunIsRefusedSayingWhatDiffers) {
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

}  // namespace
}  // namespace skein::apps
