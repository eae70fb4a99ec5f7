// Opens a file of weights as a usable model.
#include "apps/model/saved_model.h"

#include <fmt/format.h>

#include "engine/words/find_row.h"
#include "nn/file_layout.h"
#include "nn/models.h"

namespace skein::apps {
namespace {

bool said(const Config& c, const std::string& flag) { return c.origin(flag).source != Source::kDefault; }

// Assumes square images of --image-size, or of the size the model was made for.
Preparation assume_preparation(const Config& c) {
  int64_t side = c.image_size;
  if (const nn::ModelRow* row = find_row(nn::models(), c.model); row && side == 0) side = row->default_size;
  return imagenet_preparation(side > 0 ? int(side) : 224);
}

// The file's own number of classes: the rows of the layer that is the classifier of such a model.
int64_t count_classes(const std::string& path, const TensorFile& file, const std::string& model,
                      const nn::Input& input) {
  nn::Input one = input;
  one.classes = 1;
  const std::string name = classifier_of(*nn::make_model(model, one)) + "weight";
  const Tensor* weight = file.find(name);
  if (!weight || weight->rank() != 2 || weight->dim(0) < 1)
    throw BadFile(text(path, ": holds no classifier ", name, " of --model ", model,
                       "; say with --model which network these weights are of"));
  return weight->dim(0);
}

std::vector<std::string> names_or_numbers(const std::string& path, std::vector<std::string> names,
                                          int64_t n) {
  if (names.empty())
    for (int64_t i = 0; i < n; ++i) names.push_back(std::to_string(i));
  if (int64_t(names.size()) != n)
    throw BadFile(
        text(path, ": damaged: its metadata name ", names.size(), " classes, its classifier has ", n));
  return names;
}

}  // namespace

void take_over(Config& c, const std::string& path, const ModelInfo& info) {
  if (!said(c, "model") && !info.model.empty()) c.model = info.model;
  const auto prepared = read_preparation(path, info.more);
  if (c.image_size == 0 && prepared && prepared->image.height == prepared->image.width)
    c.image_size = prepared->image.height;
}

void take_model_of_weights(Config& c) {
  if (c.weights.empty()) return;
  const ModelInfo info = info_of(c.weights, read_safetensors(c.weights));
  if (info.model.empty() || info.model == c.model) return;
  if (said(c, "model"))
    throw BadOption(text(c.origin("model").place, ' ', c.model, ": ", c.weights, " is of ", info.model,
                         "; leave --model out, or give other weights"));
  c.model = info.model;
}

SavedModel open_saved_model(const Config& given, Device device) {
  Config c = given;
  const TensorFile file = read_safetensors(c.weights);
  const ModelInfo info = info_of(c.weights, file);
  if (!said(c, "model") && info.model.empty())
    throw BadOption(text(c.weights, ": does not say which model its weights are of; give --model"));
  take_over(c, c.weights, info);
  const auto prepared = read_preparation(c.weights, info.more);
  SavedModel m;
  m.model = c.model;
  m.preparation = prepared ? *prepared : assume_preparation(c);
  if (c.image_size > 0) m.preparation.image.height = m.preparation.image.width = int(c.image_size);
  const data::ImageSize& image = m.preparation.image;
  if (!prepared)
    m.assumed = fmt::format(
        "{}: does not say how its images were prepared; {}x{} and ImageNet's normalization are assumed",
        c.weights, image.height, image.width);
  nn::Input input{image.height, image.width, image.channels, 1};
  input.classes = count_classes(c.weights, file, c.model, input);
  m.net = nn::make_model(c.model, input);
  m.classes = names_or_numbers(c.weights, info.classes, input.classes);
  if (device.is_cuda()) nn::flatten(*m.net, allocator(device));
  import_model(c.weights, file, *m.net);
  m.net->set_training(false);
  return m;
}

}  // namespace skein::apps
