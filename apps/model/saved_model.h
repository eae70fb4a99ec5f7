// SavedModel: a model without its training data, for prediction and export.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/config/config.h"
#include "apps/model/preparation.h"
#include "apps/model/weights.h"

namespace skein::apps {

struct SavedModel {
  std::unique_ptr<nn::Module> net;  // in evaluation mode
  std::string model;                // its name in models.def
  std::vector<std::string> classes;
  Preparation preparation;
  std::string assumed;  // a line about what the file does not say and was assumed; empty if nothing was
};

// Opens --weights on `device`. Model, classes, image size and normalization come from the file unless --model
// or --image-size are given. If the file does not name them (torchvision's), --model is required, ImageNet's
// preparation is assumed, and classes are named by their numbers. Throws BadOption or BadFile.
SavedModel open_saved_model(const Config&, Device device = kCpu);

// Takes model and image size from the file if the user did not give them.
void take_over(Config&, const std::string& path, const ModelInfo&);

// Training that starts from --weights trains the model that the file names, if it names one and --model is
// not given. Throws BadOption if --model is a different one.
void take_model_of_weights(Config&);

}  // namespace skein::apps
