// Runs convolution problems on a device by the plans that heuristics or measurements chose.
#pragma once
#include <functional>
#include <vector>

#include "engine/cuda/conv/conv_plan.h"
#include "engine/tensor.h"

namespace skein::cuda {

// A tensor and its id in the graph (kImageId, ...).
struct Operand {
  int64_t id;
  Tensor tensor;
};
using Operands = std::vector<Operand>;

// Runs the problem on the current stream. Throws Error if cuDNN has no plan.
void run(const ConvProblem&, const Operands&);

// Runs a fused problem if that is faster, and returns whether it did. With numerics().measure it is measured
// against `apart`, which computes the same by separate kernels on the same operands; otherwise
// worth_fusing() decides. The problem must not read its own result. `later`, if given, returns how many
// seconds more fusing costs elsewhere.
bool run_fused(const ConvProblem&, const Operands&, const std::function<void()>& apart,
               const std::function<double()>& later = {});
// Seconds that the device takes for the work, measured in a few runs on the current stream, each of which
// begins with a cold cache.
double seconds_of(Device, const std::function<void()>& work);
// The operands' addresses as cuDNN takes them. Making them costs the host as much as a launch, and steps
// without graphs use the same ones again and again, so a thread keeps them. Valid until its next call.
const Descriptor& arguments(const std::vector<int64_t>& ids, const std::vector<void*>& addresses,
                            void* scratch);
// How often this process has run a pass fused with exactly these flags so far.
int64_t fused_runs(ConvPass, unsigned what);

}  // namespace skein::cuda
