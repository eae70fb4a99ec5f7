// --eval-only: how good a saved model is on the test images, in all and class by class.
#pragma once
#include "apps/config/config.h"

namespace skein::apps {

// Prints the model's name, its score and a table of the classes or, with `json`, one JSON object
// (docs/weights.md). False if it was interrupted. Throws BadOption or BadFile.
bool evaluate_only(Config, bool json);

}  // namespace skein::apps
