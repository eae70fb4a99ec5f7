// Weights in files: torchvision's names and layouts, misfits, and the hash of a model.
#include "apps/model/weights.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/base/digest.h"
#include "apps/model/safetensors.h"
#include "engine/vectors/vec.h"
#include "tests/support/files.h"

namespace skein::apps {
namespace {

using testing::has;
using testing::message_of;
using testing::ScratchDir;

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

const std::vector<std::string> kNamesOfClasses = {"a", "b", "c", "d", "é"};

std::string exported(const ScratchDir& dir, uint64_t seed = 3) {
  Tiny m;
  nn::initialize(m, seed);
  m.buffers()[0]->value.data<float>()[1] = 0.25f;
  export_model(dir / "m", m,
               {.model = "tiny", .classes = kNamesOfClasses, .steps = 17, .more = {{"note", "x"}}});
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
  EXPECT_EQ(nlohmann::json::parse(f.metadata.at("classes")), nlohmann::json(kNamesOfClasses));
}

TEST(Weights, ImportUndoesExportInPlace) {
  const ScratchDir dir;
  const std::string path = exported(dir);
  Tiny m, original;
  nn::initialize(original, 3);
  const nn::Flat flat = nn::flatten(m, allocator(kCpu));
  const ModelInfo info = import_model(path, read_safetensors(path), m, kNamesOfClasses);
  EXPECT_EQ(info.model, "tiny");
  EXPECT_EQ(info.classes, kNamesOfClasses);
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
  const std::string why =
      message_of<BadFile>([&] { import_model(dir / "other", read_safetensors(dir / "other"), m); });
  for (const char* part :
       {"missing: bn.bias", "not in the model: head.weight", "bn.weight (f32 [3] in the file, f32 [2]"})
    EXPECT_TRUE(has(why, part)) << why;
  EXPECT_EQ(0, memcmp(before.raw(), m.conv_->value.raw(), size_t(before.bytes())));
}

TEST(Weights, AnotherNumberOfClassesIsSaidInWords) {
  const ScratchDir dir;
  const std::string path = exported(dir);
  const TensorFile file = read_safetensors(path);
  Tiny ten(10);
  const std::string m = message_of<BadFile>([&] { import_model(path, file, ten); });
  EXPECT_TRUE(has(m, "made for 5 classes, the model here has 10")) << m;
  Tiny same;
  const std::string other = message_of<BadFile>([&] {
    import_model(path, file, same, {"a", "b", "C", "d", "é"});
  });
  EXPECT_TRUE(has(other, "number 2 is 'c' there and 'C' in the data")) << other;
}

TEST(Weights, OfATrainingThatHasDivergedAreRefused) {
  const ScratchDir dir;
  Tiny diverged, m;
  nn::initialize(diverged, 3), nn::initialize(m, 9);
  diverged.params().back()->value.data<float>()[2] = NAN;
  diverged.buffers()[1]->value.data<float>()[0] = INFINITY;
  export_model(dir / "m", diverged, {.model = "tiny", .classes = kNamesOfClasses, .steps = 1, .more = {}});
  const Tensor before = m.conv_->value.clone();
  for (const std::string& why :
       {message_of<BadFile>([&] { import_model(dir / "m", read_safetensors(dir / "m"), m); }),
        message_of<BadFile>([&] { import_for_tuning(dir / "m", m, kNamesOfClasses); })})
    EXPECT_TRUE(has(why, "not finite, in fc.bias, bn.running_var: ")) << why;
  EXPECT_EQ(0, memcmp(before.raw(), m.conv_->value.raw(), size_t(before.bytes())));
}

// A directory's name may be in Latin-1, and a file's metadata are UTF-8.
TEST(Weights, ClassesWhoseNamesAreNotUtf8AreTheSameAsInTheirData) {
  const ScratchDir dir;
  const std::vector<std::string> classes = {"a", "b", "c", "d", "M\xfcnch"};
  Tiny m;
  nn::initialize(m, 3);
  export_model(dir / "m", m, {.model = "tiny", .classes = classes, .steps = 1, .more = {}});
  EXPECT_NO_THROW(import_model(dir / "m", read_safetensors(dir / "m"), m, classes));
  EXPECT_EQ(import_for_tuning(dir / "m", m, classes), "");
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

}  // namespace
}  // namespace skein::apps
