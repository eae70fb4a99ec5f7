// SavedModel: a model on its own, without the data it was trained on, as predicting and exporting need it.
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
  std::string assumed;  // in one line, what the file does not say and was taken to be so; empty: nothing
};

// Opens --weights on `device`. What the file says of model, classes, image size and normalization
// holds unless --model or --image-size say otherwise; of a file that says nothing (torchvision's)
// --model is asked for, ImageNet's preparation is assumed, and classes are called by their numbers.
// Throws BadOption or BadFile.
SavedModel open_saved_model(const Config&, Device device = kCpu);

// What the file says of its model and image size, where the user did not say it.
void take_over(Config&, const std::string& path, const ModelInfo&);

// Training that starts from --weights trains the model the file names, where it names one and --model is not
// given. BadOption: --model says another.
void take_model_of_weights(Config&);

}  // namespace skein::apps
