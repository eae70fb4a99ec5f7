// The file format, and models in torchvision's names and layouts.
#include "apps/model/safetensors.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/base/digest.h"
#include "apps/model/weights.h"
#include "engine/random.h"
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

// A convolution, its norm, and a linear layer after a map of 2 x 3 x 2.
class Tiny final : public nn::Module {
 public:
  explicit Tiny(int64_t classes = 5) {
    conv_ = param("conv.weight", {2, 3, 3, 4}, nn::Init::uniform(1));
    conv_->file = nn::FileLayout::kOihw;
    param("bn.weight", {2}, nn::Init::uniform(1), false);
    param("bn.bias", {2}, nn::Init::uniform(1), false);
    buffer("bn.running_mean", {2}, 0);
    buffer("bn.running_var", {2}, 1);
    nn::Param* fc = param("fc.weight", {classes, 12}, nn::Init::uniform(1));
    fc->file = nn::FileLayout::kLinearFromMap;
    fc->map = {2, 3, 2};
    param("fc.bias", {classes}, nn::Init::uniform(1), false);
  }
  Tensor forward(const Tensor& x) override { return x; }
  nn::Param* conv_;
};

const std::vector<std::string> kClasses = {"a", "b", "c", "d", "é"};

std::string exported(const ScratchDir& dir, uint64_t seed = 3) {
  Tiny m;
  nn::initialize(m, seed);
  m.buffers()[0]->value.data<float>()[1] = 0.25f;
  export_model(dir / "m", m, {.model = "tiny", .classes = kClasses, .steps = 17, .more = {{"note", "x"}}});
  return dir / "m";
}

TEST(Weights, FilesHaveTorchvisionsNamesAndLayouts) {
  const ScratchDir dir;
  Tiny m;
  nn::initialize(m, 3);
  const TensorFile f = read_safetensors(exported(dir));
  const Tensor conv = *f.find("conv.weight"), ours = m.conv_->value;
  ASSERT_EQ(conv.shape(), (Shape{2, 4, 3, 3}));
  for (int64_t o = 0; o < 2; ++o)
    for (int64_t h = 0; h < 3; ++h)
      for (int64_t w = 0; w < 3; ++w)
        for (int64_t i = 0; i < 4; ++i)
          EXPECT_EQ(conv.data<float>()[((o * 4 + i) * 3 + h) * 3 + w],
                    ours.data<float>()[((o * 3 + h) * 3 + w) * 4 + i]);
  const Tensor fc = *f.find("fc.weight"), rows = m.params()[3]->value;
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t w = 0; w < 3; ++w)
      for (int64_t c = 0; c < 2; ++c)
        EXPECT_EQ(fc.data<float>()[(c * 2 + h) * 3 + w], rows.data<float>()[(h * 3 + w) * 2 + c]);
  const Tensor* counter = f.find("bn.num_batches_tracked");
  ASSERT_TRUE(counter);
  EXPECT_EQ(counter->shape(), Shape{});
  EXPECT_EQ(*counter->data<int64_t>(), 17);
  EXPECT_EQ(f.tensors.size(), 8u);
  EXPECT_EQ(f.metadata.at("model"), "tiny");
  EXPECT_EQ(nlohmann::json::parse(f.metadata.at("classes")), nlohmann::json(kClasses));
}

TEST(Weights, ImportUndoesExportInPlace) {
  const ScratchDir dir;
  const std::string path = exported(dir);
  Tiny m, original;
  nn::initialize(original, 3);
  const nn::Flat flat = nn::flatten(m, allocator(kCpu));
  const ModelInfo info = import_model(path, m, kClasses);
  EXPECT_EQ(info.model, "tiny");
  EXPECT_EQ(info.classes, kClasses);
  EXPECT_EQ(info.steps, 17);
  EXPECT_EQ(info.more.at("note"), "x");
  for (size_t i = 0; i < m.params().size(); ++i) {
    const Tensor a = m.params()[i]->value, b = original.params()[i]->value;
    EXPECT_EQ(0, memcmp(a.raw(), b.raw(), size_t(a.bytes()))) << m.params()[i]->name;
  }
  EXPECT_EQ(m.buffers()[0]->value.data<float>()[1], 0.25f);
  EXPECT_EQ(flat.x.data<float>()[flat.segments[0].offset],
            m.conv_->value.data<float>()[0]);  // windows are still bound
}

TEST(Weights, AMisfitIsListedAndChangesNothing) {
  const ScratchDir dir;
  TensorFile f = read_safetensors(exported(dir));
  std::erase_if(f.tensors, [](const auto& t) { return t.first == "bn.bias"; });
  for (auto& [name, t] : f.tensors)
    if (name == "bn.weight") t = Tensor::zeros({3});
  f.tensors.emplace_back("head.weight", Tensor::zeros({1}));
  write_safetensors(dir / "other", f);
  Tiny m;
  nn::initialize(m, 9);
  const Tensor before = m.conv_->value.clone();
  const std::string why = message_of<BadFile>([&] { import_model(dir / "other", m); });
  for (const char* part :
       {"missing: bn.bias", "not in the model: head.weight", "bn.weight (f32 [3] in the file, f32 [2]"})
    EXPECT_TRUE(has(why, part)) << why;
  EXPECT_EQ(0, memcmp(before.raw(), m.conv_->value.raw(), size_t(before.bytes())));
}

TEST(Weights, AnotherNumberOfClassesIsSaidInWords) {
  const ScratchDir dir;
  const std::string path = exported(dir);
  Tiny ten(10);
  const std::string m = message_of<BadFile>([&] { import_model(path, ten); });
  EXPECT_TRUE(has(m, "made for 5 classes, the model here has 10")) << m;
  Tiny same;
  const std::string other = message_of<BadFile>([&] { import_model(path, same, {"a", "b", "C", "d", "é"}); });
  EXPECT_TRUE(has(other, "number 2 is 'c' there and 'C' in the data")) << other;
}

TEST(Hash, IsOfTheParametersInNameOrderAndIgnoresPadding) {
  Tiny m;
  nn::initialize(m, 3);
  const nn::Flat flat = nn::flatten(m, allocator(kCpu));
  Digest d;  // bn.bias, bn.weight, conv.weight, fc.bias, fc.weight
  for (const char* name : {"bn.bias", "bn.weight", "conv.weight", "fc.bias", "fc.weight"})
    for (const nn::Param* p : m.params())
      if (p->name == name) d.add(p->value.raw(), size_t(p->value.bytes()));
  const std::string hash = parameter_hash(flat, flat.x);
  EXPECT_EQ(hash, d.hex());
  Tensor padded = flat.x.clone();
  const nn::Segment& s = flat.segments[0];
  padded.data<float>()[s.offset + s.shape.volume()] = 1;
  EXPECT_EQ(parameter_hash(flat, padded), hash);
  padded.data<float>()[s.offset] += 1;
  EXPECT_NE(parameter_hash(flat, padded), hash);
}

TEST(Hash, OfTheLayoutTellsModelsApart) {
  Tiny a, b, c(6);
  const std::string hash = layout_hash(nn::flatten(a, allocator(kCpu)));
  EXPECT_EQ(hash, layout_hash(nn::flatten(b, allocator(kCpu))));
  EXPECT_NE(hash, layout_hash(nn::flatten(c, allocator(kCpu))));
  EXPECT_EQ(hash.size(), 64u);
}

TEST(Digest, IsBlake2bOf256Bits) {  // of the empty string; RFC 7693's function with a 32-byte output
  EXPECT_EQ(Digest().hex(), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
}

}  // namespace
}  // namespace skein::apps
