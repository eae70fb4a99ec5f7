// Convolution problems run on a device by the plan chosen for them: by heuristics or by measurement.
#pragma once
#include <functional>
#include <vector>

#include "engine/cuda/conv/conv_plan.h"
#include "engine/tensor.h"

namespace skein::cuda {

// A tensor and what the graph calls it (kImageId, ...).
struct Operand {
  int64_t id;
  Tensor tensor;
};
using Operands = std::vector<Operand>;

// Runs the problem on the current stream. Throws Error where cuDNN has no way.
void run(const ConvProblem&, const Operands&);

// Runs a problem with something fused onto it if that is the faster way, and says whether it did: measured
// against `apart`, which does the same by other kernels on the same operands; or, without numerics().measure,
// by worth_fusing(). A result must not be read by its problem. `later`, if given, measures how many seconds
// more fusing costs elsewhere.
bool run_fused(const ConvProblem&, const Operands&, const std::function<void()>& apart,
               const std::function<double()>& later = {});
// Seconds that the device takes for a run of the work, of a few on the current stream, each of which begins
// with a cache that holds nothing of use.
double seconds_of(Device, const std::function<void()>& work);
// How often arguments were put together for cuDNN, by this process so far: not where a thread comes with the
// same ones again.
int64_t arguments_made();
// How often a pass was run with just these flags fused onto it, by this process so far.
int64_t fused_runs(ConvPass, unsigned what);

}  // namespace skein::cuda
