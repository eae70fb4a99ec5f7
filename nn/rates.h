// The learning rate and weight decay of each parameter, relative to those of the step.
#pragma once
#include "engine/vectors/segments.h"
#include "nn/module.h"

namespace skein::nn {

// A parameter's rate is the step's rate times
//   layer_decay^(number of layers behind its own)  *  head, if it belongs to the last layer
//                                                  *  norms, if it is a norm's or a bias
struct Rates {
  double layer_decay = 1, head = 1, norms = 1;
  bool decay_all = false;  // norms and biases decay, too
};

// The segments of flat.x as a rule sees them. Weights of all layers but the last are hidden.
Segments segments_of(const Flat&, const Rates& = {});

}  // namespace skein::nn
