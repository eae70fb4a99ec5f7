// --predict: pictures in, classes and probabilities out.
#pragma once
#include <string>
#include <vector>

#include "apps/config.h"

namespace skein::apps {

struct Prediction {
  std::vector<std::string> paths;  // files and directories
  int64_t top = 5;                 // classes to name for each picture
  bool json = false;               // one JSON object a line
  std::string logits;              // .npy file for the logits of the readable pictures, [pictures, classes]
};

// Shows the pictures to the model of --weights, prepared as evaluation prepares them, and prints to stdout.
// Pictures that cannot be read are named on stderr. Returns how many those were. Throws BadOption or BadFile.
int64_t predict(const Config&, const Prediction&);

}  // namespace skein::apps
