// Exported ONNX files: the same logits in onnxruntime.
#include "apps/model/export_onnx.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "apps/model/vectors.h"
#include "tests/support/files.h"
#include "tests/support/numbers/difference.h"
#include "tests/support/program.h"
#include "tests/support/random_model.h"

namespace skein::apps {
namespace {

using testing_programs::Ended;
using testing_programs::Workplace;

constexpr int64_t kOutputs = 7, kBatch = 3;  // a different batch from that of the export

SavedModel saved(const std::string& name, int side, int channels) {
  SavedModel m;
  m.model = name;
  for (int64_t i = 0; i < kOutputs; ++i) m.classes.push_back(text("class ", i));
  m.preparation = imagenet_preparation(side);
  m.preparation.image.channels = channels;
  m.net = testing::random_model(name, {side, side, channels, kOutputs}, 13);
  return m;
}

void write_npy(const std::string& path, const Tensor& t) {
  Vectors v{.npy = true,
            .items = {{.name = "", .type = "<f4", .shape = {t.shape().begin(), t.shape().end()}}},
            .flat = {}};
  v.flat = t.view({t.size()});
  write_vectors(path, v);
}

TEST(Onnx, GivesTheSameLogitsInOnnxruntime) {
  const Workplace w;
  const std::string python = "'" SKEIN_SOURCE_DIR "/build/python/bin/python'";
  if (w.run(python + " -c \"import onnxruntime\"").status != 0)
    GTEST_SKIP() << "skipped: no onnxruntime in build/python; scripts/install --test puts it there";
  std::string line = python + " '" SKEIN_SOURCE_DIR "/tests/onnx_graph.py' .";
  std::map<std::string, Tensor> here;
  const NoTape off;
  for (const char* name : testing::model_names()) {
    const int side = testing::side_of(name), channels = std::string(name) == "gem-cnn" ? 1 : 3;
    SavedModel m = saved(name, side, channels);
    export_onnx(w.path() / (std::string(name) + ".onnx"), m);
    Tensor planes({kBatch, channels, side, side});
    fill_uniform(planes, {3, Purpose::kTest, 0, 0}, -1.7f, 1.7f);
    write_npy(w.path() / (std::string(name) + "-x.npy"), planes);
    here[name] = m.net->forward(transpose(planes, {0, 2, 3, 1}));
    line += std::string(" ") + name;
  }
  const Ended e = w.run(line);
  ASSERT_EQ(e.status, 0) << e.out << e.err;
  for (const auto& [name, ours] : here) {
    const Tensor theirs = read_vectors(w.path() / (name + "-y.npy")).flat;
    ASSERT_EQ(theirs.size(), ours.size()) << name;
    double worst = 0, scale = 1;
    for (int64_t i = 0; i < ours.size(); ++i) {
      const double a = ours.data<float>()[i], b = theirs.data<float>()[i];
      worst = differences::worse(worst, std::abs(a - b)), scale = std::max(scale, std::abs(b));
    }
    EXPECT_LT(worst, 1e-4 * scale) << name;
    std::cout << name << ": off by " << worst << ", largest logit " << scale << '\n';
  }
}

}  // namespace
}  // namespace skein::apps
