// FlatModel: what a simulated worker trains where no model computes: one vector, cut like a model's.
#pragma once
#include <vector>

#include "apps/config/config.h"
#include "apps/launch/world_file.h"
#include "nn/slices.h"

namespace skein::apps {

// A share of backward, and the slices of the vector that are final after it.
struct FlatPart {
  double share = 0;
  std::vector<nn::Slice> slices = {};
};

// A quadratic is a vector of its own. A ghost has a number for every so many parameters of the model that it
// stands for: its messages are counted as that model's, without the cost of computing and copying as much.
struct FlatModel {
  int64_t parameters = 0;            // of the model
  int64_t elements = 0;              // of the vector that each worker keeps
  double stands_for = 1;             // elements of the model's vector, by each of them
  std::vector<FlatPart> parts = {};  // of backward: the model's parameter tensors from the last to the first
  std::string words = "";            // for people

  std::vector<FlatPart> sliced_parts() const;  // the same, parts without slices joined to the next one
};

// Throws BadOption for a model that there is not, or one that cannot take such images.
FlatModel flat_model(const Config&, const GradientPlan&);

}  // namespace skein::apps
