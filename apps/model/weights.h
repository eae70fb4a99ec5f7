// Models as files of weights in torchvision's names and layouts, and the hash of a model's parameters.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "apps/model/safetensors.h"
#include "nn/module.h"

namespace skein::apps {

struct ModelInfo {
  std::string model;                 // its name in models.def
  std::vector<std::string> classes;  // names in label order
  int64_t steps = 0;                 // training steps taken; becomes `num_batches_tracked` of every norm
  std::map<std::string, std::string> more;  // further metadata
};

// Parameters and buffers under torchvision's names in torchvision's layouts (O I H W), with
// `num_batches_tracked` for each norm and the metadata version, model, classes (a JSON list), steps. The
// write is atomic. Throws BadFile.
void export_model(const std::string& path, nn::Module&, const ModelInfo&);

// Fills the module's parameters and buffers in place, on any device, and returns the file's description of
// itself. Nothing is changed unless everything fits: throws BadFile listing missing, unexpected and misshapen
// names, or saying that the file has another number of classes. If `classes`, those of the data, are given,
// other names in the file are an error, too.
// `path` is for messages.
ModelInfo import_model(const std::string& path, const TensorFile&, nn::Module&,
                       const std::vector<std::string>& classes = {});

// For fine-tuning: like import_model(), but a classifier (the last layer) for another number of classes, or
// for classes with other names, is not loaded. Returns why in one line, or "" if it was loaded.
std::string import_for_tuning(const std::string& path, nn::Module&, const std::vector<std::string>& classes);

// The file's description of itself. Throws BadFile if the metadata are damaged.
ModelInfo info_of(const std::string& path, const TensorFile&);
// "fc." for a model that ends in fc.weight and fc.bias.
std::string classifier_of(nn::Module&);

// BLAKE2b-256, hexadecimal, over the fp32 values of the parameters in order of their names, padding excluded.
// `x` has the layout of flat.x (a consensus, another worker's vector) and may be on any device.
std::string parameter_hash(const nn::Flat& flat, const Tensor& x);
// The hash of names, shapes and offsets of parameters and buffers. Models with equal layouts may
// exchange vectors and checkpoints.
std::string layout_hash(const nn::Flat& flat);

}  // namespace skein::apps
