// FlatModel: what a simulated worker trains where no model computes: one vector, cut like a model's.
#pragma once
#include <vector>

#include "apps/config/config.h"
#include "apps/launch/world_file.h"

namespace skein::apps {

// A part of the vector whose gradient is complete after so large a share of backward.
struct FlatPart {
  int64_t begin = 0, end = 0;
  double share = 0;
};

// A quadratic is a vector of its own. A ghost has a number for every so many parameters of the model that it
// stands for: its messages are counted as that model's, without the cost of computing and copying as much.
struct FlatModel {
  int64_t parameters = 0;          // of the model
  int64_t elements = 0;            // of the vector that each worker keeps
  double stands_for = 1;           // parameters, by each of them
  std::vector<int64_t> ends = {};  // of the model's parameter tensors, in the order of the model, in elements
  std::string words = "";          // for people

  // The parts from the end to the front, each at least so long, as backward completes them: it takes the same
  // time for each tensor. 0: the tensors themselves.
  std::vector<FlatPart> backward(double least_elements) const;
};

// Throws BadOption for a model that there is not, or one that cannot take such images.
FlatModel flat_model(const Config&, const GradientPlan&);

}  // namespace skein::apps
