// --predict: pictures in, classes and probabilities out.
#pragma once
#include "apps/config/config.h"

namespace skein::apps {

// Shows the pictures to the model of --weights, prepared as evaluation prepares them, and prints to stdout.
// Names pictures that cannot be read on stderr, and returns their number. Throws BadOption or BadFile.
int64_t predict(const Config&, const Prediction&);

}  // namespace skein::apps
