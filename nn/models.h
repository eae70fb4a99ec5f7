// The models, by name. One row each in models.def.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "nn/module.h"

namespace skein::nn {

// The size of the images in training batches and the number of classes, which a model is made for.
struct Input {
  int64_t height = 0, width = 0, channels = 3;
  int64_t classes = 10;
};

struct ModelRow {
  const char* name;       // as on the command line
  const char* source;     // citation and size
  int64_t default_size;   // image side it was made for; 0: that of the data
  int64_t smallest_size;  // least image side it can take
  std::unique_ptr<Module> (*make)(const Input&);
};
const std::vector<ModelRow>& models();

// Both accept hyphens and underscores and throw BadOption naming the nearest valid name.
const ModelRow& model_row(const std::string& name);
// Makes the model on the CPU, uninitialized. Throws BadOption also if images are too small, naming the
// smallest side the model can take.
std::unique_ptr<Module> make_model(const std::string& name, const Input&);

}  // namespace skein::nn
