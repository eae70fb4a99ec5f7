// --eval-only: scores a saved model on the test images, in total and by class.
#pragma once
#include "apps/config/config.h"

namespace skein::apps {

// Prints the model's name, its score and a table of the classes or, with `json`, one JSON object
// (docs/weights.md). Returns false if it was interrupted. Throws BadOption or BadFile.
bool evaluate_only(Config, bool json);

}  // namespace skein::apps
