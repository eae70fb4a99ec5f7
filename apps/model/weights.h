// Models as files of weights in torchvision's names and layouts, and the hash of a model's parameters.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "apps/model/safetensors.h"
#include "nn/module.h"

namespace skein::apps {

struct ModelInfo {
  std::string model;                        // its name in models.def
  std::vector<std::string> classes;         // names in label order
  int64_t steps = 0;                        // training steps taken: `num_batches_tracked` of every norm
  std::map<std::string, std::string> more;  // further metadata
};

// Parameters and buffers under torchvision's names in torchvision's layouts (O I H W), with
// `num_batches_tracked` for each norm and the metadata version, model, classes (a JSON list),
// steps. Atomic; throws BadFile.
void export_model(const std::string& path, nn::Module&, const ModelInfo&);

// Fills the module's parameters and buffers in place (windows stay bound; any device) and returns what the
// file says of itself. Nothing is changed unless everything fits: throws BadFile listing missing, unexpected
// and misshapen names, or saying that the file was made for another number of classes. `classes`, if given,
// are the data's: other names than the file's are an error too.
ModelInfo import_model(const std::string& path, nn::Module&, const std::vector<std::string>& classes = {});
// The same of a file that was read already; `path` is for messages.
ModelInfo import_model(const std::string& path, const TensorFile&, nn::Module&,
                       const std::vector<std::string>& classes = {});

// To go on training from: as import_model, but a classifier (the last layer) made for another number of
// classes, or for classes of other names, is left as the module has it. Returns why in one line; empty: the
// file's was taken.
std::string import_for_tuning(const std::string& path, nn::Module&, const std::vector<std::string>& classes);

// What the file says of itself. Throws BadFile if the metadata are damaged.
ModelInfo info_of(const std::string& path, const TensorFile&);
// "fc." for a model that ends in fc.weight and fc.bias.
std::string classifier_of(nn::Module&);

// BLAKE2b-256, hexadecimal, over the fp32 values of the parameters in order of their names, padding excluded.
// `x`: a vector laid out as flat.x (a consensus, another worker's); may lie on any device.
std::string parameter_hash(const nn::Flat& flat, const Tensor& x);
// Of names, shapes and offsets of parameters and buffers: equal layouts may exchange vectors and checkpoints.
std::string layout_hash(const nn::Flat& flat);

}  // namespace skein::apps
