// Our own convolutions, for processors with AVX2: products over image windows, without im2col.
#pragma once
#include "engine/backend.h"

namespace skein::cpu {

// Groups must be 1. Contracts of backend.h.
void direct_forward(const ConvArgs&);
// Whether forward can take sums: where tiles are full and write the results themselves.
bool direct_gives_sums(const ConvArgs&);
void direct_backward_data(const ConvArgs&);
void direct_backward_weights(const ConvArgs&);

// The same three through oneDNN, for every shape; with names of their own for tests and benchmarks.
void onednn_forward(const ConvArgs&);
void onednn_backward_data(const ConvArgs&);
void onednn_backward_weights(const ConvArgs&);
// oneDNN's names of the implementations chosen on this thread so far, "pass shape: name" each.
std::vector<std::string> onednn_choices();

}  // namespace skein::cpu
