// Safetensors: round trips, foreign files, damage, full disks.
#include "apps/model/safetensors.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/vectors/vec.h"
#include "tests/support/files.h"

namespace skein::apps {
namespace {

using testing::has;
using testing::message_of;
using testing::ScratchDir;
using testing::slurp;
using testing::SmallDisk;
using testing::spill;

std::string with_header(const std::string& json, const std::string& data) {
  const uint64_t n = json.size();
  return std::string(reinterpret_cast<const char*>(&n), 8) + json + data;
}

TEST(Safetensors, RoundTripKeepsEveryBitOfEveryType) {
  const ScratchDir dir;
  TensorFile file{.metadata = {{"who", "a \"quoted\" näme"}}, .tensors = {}};
  file.tensors = {{"u8", Tensor::of<uint8_t>({3}, {0, 127, 255})},
                  {"f32", Tensor::of<float>({2, 2}, {-0.f, 1e-45f, NAN, INFINITY})},
                  {"empty", Tensor::of<float>({0, 4}, {})},
                  {"bf16", Tensor::of<bf16>({1}, {bf16(-3.5f)})},
                  {"f16", Tensor::of<f16>({1}, {f16(-3.5f)})},
                  {"i64", Tensor::of<int64_t>({}, {INT64_MIN})},
                  {"i32", Tensor::of<int32_t>({1, 1, 2}, {-1, 7})}};
  const std::string sum = write_safetensors(dir / "a.safetensors", file);
  const TensorFile back = read_safetensors(dir / "a.safetensors", sum);
  EXPECT_EQ(back.metadata, file.metadata);
  ASSERT_EQ(back.tensors.size(), file.tensors.size());
  for (const auto& [name, t] : file.tensors) {
    const Tensor* b = back.find(name);
    ASSERT_TRUE(b) << name;
    EXPECT_EQ(b->shape(), t.shape()) << name;
    EXPECT_EQ(b->dtype(), t.dtype()) << name;
    EXPECT_EQ(0, memcmp(b->raw(), t.raw(), size_t(t.bytes()))) << name;
    EXPECT_EQ(uintptr_t(b->raw()) % uintptr_t(size_of(t.dtype())), 0u) << name;
  }
  EXPECT_EQ(back.find("other"), nullptr);
}

TEST(Safetensors, BytesAreTheFormatsOwn) {  // by hand, from the format's description
  const ScratchDir dir;
  write_safetensors(dir / "a", {.metadata = {}, .tensors = {{"x", Tensor::of<float>({2}, {1, 2})}}});
  std::string header = R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const float data[] = {1, 2};
  EXPECT_EQ(slurp(dir / "a"), with_header(header, std::string(reinterpret_cast<const char*>(data), 8)));
}

TEST(Safetensors, ReadsUnalignedDataOfOthers) {
  const ScratchDir dir;
  std::string data = "\x05";
  const float v = 1.5f;
  data.append(reinterpret_cast<const char*>(&v), 4);
  spill(dir / "a", with_header(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                               R"("f":{"dtype":"F32","shape":[],"data_offsets":[1,5]}})",
                               data));
  EXPECT_EQ(read_safetensors(dir / "a").find("f")->item(), 1.5f);
}

TEST(Safetensors, AMillionKeysAreRead) {
  const ScratchDir dir;
  std::string keys;
  for (int i = 0; i < 1000000; ++i) keys += text(i ? "," : "", '"', i, "\":\"\"");
  spill(dir / "a", with_header(R"({"__metadata__":{)" + keys + "}}", ""));
  EXPECT_EQ(read_safetensors(dir / "a").metadata.size(), 1000000u);
}

TEST(Safetensors, DamagedFilesAreRefusedByName) {
  const ScratchDir dir;
  const auto entry = [](const char* type, const char* shape, const char* at) {
    return text(R"({"dtype":")", type, R"(","shape":)", shape, R"(,"data_offsets":)", at, "}");
  };
  const std::string four(4, 'x'), eight(8, 'x');
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  const std::pair<std::string, const char*> bad[] = {
      {"", "too short"},
      {"abc", "too short"},
      {std::string(8, '\xff') + "{}", "not a safetensors file"},
      {std::string("\x40\0\0\0\0\0\0\0", 8) + "{}", "truncated"},
      {with_header("[]", ""), "not a JSON object"},
      {with_header("{\"a\":", ""), "not a JSON object"},
      {with_header(R"({"a":3})", ""), "lacks dtype"},
      {with_header(R"({"__metadata__":{"a":3}})", ""), "not a string"},
      {with_header(text(R"({"a":)", entry("F8", "[4]", "[0,4]"), "}"), four), "type \"F8\""},
      {with_header(text(R"({"a":)", entry("F32", "[2]", "[0,4]"), "}"), four), "does not fill"},
      {with_header(text(R"({"a":)", entry("F32", "[-1]", "[0,4]"), "}"), four), "impossible shape"},
      {with_header(text(R"({"a":)", entry("F32", "[4294967296,4294967296]", "[0,0]"), "}"), ""),
       "impossible shape"},
      {with_header(text(R"({"a":)", entry("F32", "[4611686018427387905]", "[0,4]"), "}"), four),
       "does not fill"},
      {with_header(text(R"({"a":)", entry("F32", "[1,1,1,1,1,1,1]", "[0,4]"), "}"), four), "at most 6 axes"},
      {with_header(text(R"({"a":)", entry("F32", "[1]", "[4,0]"), "}"), four), "does not fill"},
      {with_header(text(R"({"a":)", entry("F32", "[1]", "[4,8]"), "}"), eight), "belong to no tensor"},
      {with_header(
           text(R"({"a":)", entry("F32", "[2]", "[0,8]"), R"(,"b":)", entry("F32", "[1]", "[4,8]"), "}"),
           eight),
       "overlaps"},
      {with_header(text(R"({"a":)", entry("F32", "[2]", "[0,8]"), "}"), four), "truncated"},
      {with_header(text(R"({"a":)", entry("F32", deep.c_str(), "[0,8]"), "}"), eight),
       "of at most 64 levels"},
      {with_header(R"({"a":{"dtype":)" + deep + "}}", eight), "of at most 64 levels"},
      {with_header(text(R"({"a":)", entry("F32", "[1]", "[0,4]"), "}"), eight), "after the last"},
  };
  for (const auto& [bytes, what] : bad) {
    spill(dir / "bad", bytes);
    const std::string m = message_of<BadFile>([&] { read_safetensors(dir / "bad"); });
    EXPECT_TRUE(has(m, what)) << "wanted '" << what << "', got: " << m;
    EXPECT_TRUE(m.starts_with(dir / "bad")) << m;
  }
  EXPECT_TRUE(has(message_of<BadFile>([&] { read_safetensors(dir / "none"); }), "No such file"));
  std::filesystem::create_symlink("/dev/zero", dir / "zeros");
  EXPECT_TRUE(has(message_of<BadFile>([&] { read_safetensors(dir / "zeros"); }), "or a device"));
  std::filesystem::resize_file(dir / "bad", size_t(1) << 43);  // takes no space
  EXPECT_TRUE(has(message_of<BadFile>([&] { read_safetensors(dir / "bad"); }), "more than the memory"));
}

TEST(Safetensors, EveryTruncationAndEveryFlippedBitIsNoticedByTheChecksum) {
  const ScratchDir dir;
  const std::string sum = write_safetensors(
      dir / "a", {.metadata = {{"k", "v"}}, .tensors = {{"x", Tensor::of<float>({2}, {1, 2})}}});
  const std::string good = slurp(dir / "a");
  for (size_t i = 0; i < good.size(); ++i) {
    spill(dir / "b", good.substr(0, i));
    EXPECT_THROW(read_safetensors(dir / "b"), BadFile) << i;
    std::string flipped = good;
    flipped[i] = char(flipped[i] ^ 4);
    spill(dir / "b", flipped);
    EXPECT_THROW(read_safetensors(dir / "b", sum), BadFile) << i;
  }
}

TEST(Safetensors, AFullDiskLeavesTheEarlierFileAndNoPieces) {
  const ScratchDir dir;
  const TensorFile small{.metadata = {}, .tensors = {{"x", Tensor::of<float>({2}, {1, 2})}}};
  const TensorFile large{.metadata = {}, .tensors = {{"x", Tensor::zeros({100000})}}};
  const std::string sum = write_safetensors(dir / "a", small);
  for (size_t bytes : {0, 100, 100000}) {
    const SmallDisk disk(bytes);
    const std::string m = message_of<BadFile>([&] { write_safetensors(dir / "a", large); });
    EXPECT_TRUE(has(m, dir / "a") && has(m, "cannot write")) << m;
  }
  EXPECT_EQ(read_safetensors(dir / "a", sum).tensors.size(), 1u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

}  // namespace
}  // namespace skein::apps
