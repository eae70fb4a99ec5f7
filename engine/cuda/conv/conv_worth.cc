// Decides without measuring whether a convolution is fused, by a roofline of both ways.
#include "engine/cuda/conv/conv_worth.h"

#include <algorithm>

namespace skein::cuda {
namespace {

// An H200's sustained rates; an A100's have the same ratio within a fifth.
constexpr double kOperations = 790e12, kBytes = 4.3e12;  // per second
// cuDNN's fused engines are older than its best convolutions. That they multiply at six tenths of their rate
// is a conservative assumption; --autotune measures instead.
constexpr double kFusedRate = 0.6;
constexpr double kLaunch = 2e-6;  // seconds saved with each kernel less
// A compilation takes a second, which must be regained in this many calls: ten epochs of ImageNet
// in batches of 256.
constexpr double kCompile = 1, kCalls = 50e3;

// Fused engines load 16 bytes of channels at once. What pixels with fewer channels cost them is
// not in the roofline.
constexpr int64_t kLeastChannels = 8;

double multiply(const ConvProblem& k) { return k.operations() / kOperations; }
double move(double bytes) { return bytes / kBytes; }
double alone(const ConvProblem& k) { return std::max(multiply(k), move(k.bytes())); }
// `more`: what a fused kernel reads besides the convolution's operands.
double fused(const ConvProblem& k, double more = 0) {
  return std::max(multiply(k) / kFusedRate, move(k.bytes() + more));
}
// A separate kernel that moves this many bytes.
double pass(double bytes) { return move(bytes) + kLaunch; }

// Separate sums read the result once more; the other passes read and write it.
double saved_after(const ConvProblem& k) {
  const double passes = k.fused & kSums ? 1 : 2;
  return alone(k) + pass(passes * k.result_bytes()) - fused(k);
}
// A norm's pass reads and writes the image. If the image is not stored, the convolution's weight gradient
// computes it again, in the main loop or by a pass; forward's decision counts that cost.
double saved_before(const ConvProblem& k) {
  const double normalize = pass(2 * k.image_bytes());
  const double weights = std::min(fused(k), alone(k) + normalize);
  if (k.pass == ConvPass::kWeights) return alone(k) + normalize - fused(k);
  const double sums = k.fused & kSums ? std::min(fused(k), alone(k) + pass(k.result_bytes())) : alone(k);
  return normalize + sums - fused(k) - (weights - alone(k));
}
// The sums of a norm's gradient are over the gradient and the raw image; fused, the latter alone is read.
double saved_behind(const ConvProblem& k) {
  return alone(k) + pass(2 * k.image_bytes()) - fused(k, k.image_bytes());
}

}  // namespace

Worth worth_fusing(const ConvProblem& k) {
  if (k.fused == 0 || k.c < kLeastChannels) return Worth::kNo;
  const double saved = k.fused & kNormalize      ? saved_before(k)
                       : k.fused & kNormGradient ? saved_behind(k)
                                                 : saved_after(k);
  if (saved <= 0) return Worth::kNo;
  // If cuDNN would have to compile a forward that normalizes, it has no weight gradient to match.
  const bool chained = k.fused & (kNormalize | kNormGradient);
  return chained || saved * kCalls < kCompile ? Worth::kIfReady : Worth::kEvenIfCompiled;
}

}  // namespace skein::cuda
