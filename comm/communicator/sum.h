// Sums of the same window in several ranks' memory, in rank order, written back to every one of them.
#pragma once
#include <vector>

#include "engine/tensor.h"

namespace skein::comm {

// Every out[o][i] <- in[0][i] + in[1][i] + ... All tensors have one type (f32, bf16, f16, i32, i64) and one
// size; out may be in. Floating sums run in f32 in the order given, whatever the number of threads; bf16 and
// f16 are rounded once, at the end.
void sum_in_order(const std::vector<Tensor>& out, const std::vector<Tensor>& in);

}  // namespace skein::comm
