// Exports models as ONNX files for other programs.
#pragma once
#include <string>

#include "apps/model/saved_model.h"

namespace skein::apps {

// Writes what evaluation computes: input "images" [batch, C, H, W], f32, normalized; output "logits" [batch,
// classes]. The graph is made from a forward pass of the model itself. Metadata: model, classes, image,
// view, mean, std. The write is atomic. Throws BadFile if it cannot be written, Error if the model has an
// operation without a counterpart.
void export_onnx(const std::string& path, SavedModel&);
// Exports the model in `weights` to the file of --export-onnx; what had to be assumed about
// it goes to stderr.
void export_onnx(const Config&, const std::string& weights);

}  // namespace skein::apps
