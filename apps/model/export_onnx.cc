// Writes the outline of a forward pass to a file.
#include "apps/model/export_onnx.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/model/onnx_graph.h"
#include "engine/tape.h"
#include "engine/words/file.h"
#include "engine/words/json.h"

namespace skein::apps {
namespace {

constexpr int64_t kBatch = 2;  // arbitrary: the graph does not depend on it

std::map<std::string, std::string> metadata_of(const SavedModel& m) {
  std::map<std::string, std::string> all = to_metadata(m.preparation);
  all["model"] = m.model;
  all["classes"] = json_text(nlohmann::json(m.classes));
  return all;
}

}  // namespace

void export_onnx(const std::string& path, SavedModel& m) {
  onnx::Model file;
  file.set_ir_version(kOnnxFormat);
  file.set_producer_name("skein");
  file.set_producer_version(SKEIN_VERSION);
  onnx::OperatorSet& operators = *file.add_opset_import();
  operators.set_domain("");
  operators.set_version(kOnnxOperators);
  for (const auto& [key, value] : metadata_of(m)) {
    onnx::Entry& e = *file.add_metadata_props();
    e.set_key(key), e.set_value(value);
  }
  const data::ImageSize& image = m.preparation.image;
  const Tensor images = Tensor::zeros({kBatch, image.height, image.width, image.channels});
  const NoTape off;
  const Outline outline;
  m.net->set_training(false);
  const Tensor logits = m.net->forward(images);
  file.mutable_graph()->set_name(m.model);
  OnnxGraph graph(*file.mutable_graph(), *m.net);
  graph.input(images, "images");
  graph.output(outline, logits, "logits");
  std::string bytes;
  if (!file.SerializeToString(&bytes))
    throw Error(path + ": the model is too large for one ONNX file of 2 GiB");
  write_file(path, bytes);
}

void export_onnx(const Config& given, const std::string& weights) {
  Config c = given;
  c.weights = weights;
  SavedModel m = open_saved_model(c);
  if (!m.assumed.empty()) fmt::print(stderr, "train_imagenet: {}\n", m.assumed);
  export_onnx(c.export_onnx, m);
}

}  // namespace skein::apps
