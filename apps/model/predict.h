// --predict: pictures in, classes and probabilities out.
#pragma once
#include "apps/config/config.h"

namespace skein::apps {

// Shows the pictures to the model of --weights, prepared as evaluation prepares them, and prints to stdout.
// Pictures that cannot be read are named on stderr. Returns how many those were. Throws BadOption or BadFile.
int64_t predict(const Config&, const Prediction&);

}  // namespace skein::apps
