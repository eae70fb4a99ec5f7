// The rule by which a convolution is fused without measuring: a roofline of both ways.
#include "engine/cuda/conv_worth.h"

#include <algorithm>

namespace skein::cuda {
namespace {

// An H200's sustained rates; an A100's have the same ratio within a fifth.
constexpr double kOperations = 790e12, kBytes = 4.3e12;  // each second
// cuDNN's fused engines are of an older make than its best convolutions. That they multiply at six tenths of
// their rate is an assumption, on the careful side; --autotune does without it.
constexpr double kFusedRate = 0.6;
constexpr double kLaunch = 2e-6;  // seconds that each kernel less saves
// A compilation of a second is made up for in this many calls: ten epochs of ImageNet in batches of 256.
constexpr double kCompile = 1, kCalls = 50e3;

// Passes over the result that the fusion saves, each way one: sums read it, the rest reads and writes it.
double saved_passes(const ConvProblem& k) { return k.fused & kSums ? 1 : 2; }

}  // namespace

Worth worth_fusing(const ConvProblem& k) {
  if (k.fused == 0) return Worth::kNo;
  const double multiply = k.operations() / kOperations, move = k.bytes() / kBytes;
  const double apart = std::max(multiply, move) + saved_passes(k) * k.result_bytes() / kBytes + kLaunch;
  const double fused = std::max(multiply / kFusedRate, move);
  const double saved = apart - fused;
  return saved <= 0 ? Worth::kNo : saved * kCalls < kCompile ? Worth::kIfReady : Worth::kEvenIfCompiled;
}

}  // namespace skein::cuda
