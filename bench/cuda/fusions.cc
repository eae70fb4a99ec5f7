// gpu_bench, fused convolutions: sums for a batch norm, and norms between two convolutions.
#include "bench/cuda/gpu_bench.h"
#include "engine/cuda/batch_norm.h"
#include "engine/cuda/conv/conv_run.h"
#include "engine/ops.h"
#include "engine/tape.h"
#include "tests/cuda/conv_shapes.h"

namespace skein::bench {
namespace {

// A convolution whose output is summed for a batch norm: fused and separate, and which was chosen.
void bench_sums(Table& t, int64_t batch) {
  for (const DType type : {kF16, kBF16})
    for (const testing::Layer& l : testing::resnet_layers(true, 224, true)) {
      const ConvGeometry g{l.stride, l.kernel / 2, 1, 1};
      const int64_t out = (l.side + 2 * g.padding - l.kernel) / l.stride + 1;
      const Tensor x = noise({batch, l.side, l.side, l.in}, type), y({batch, out, out, l.out}, type, kGpu);
      const Tensor w = noise({l.out, l.kernel, l.kernel, l.in});
      const ConvArgs c{.x = x, .w = w, .bias = {}, .y = y, .geometry = g};
      BatchNormArgs norm;
      norm.x = y, norm.mean = Tensor({l.out}, kF32, kGpu), norm.rstd = Tensor({l.out}, kF32, kGpu);
      const std::string what = text("conv + sums b", batch, ' ', type, ' ', l.kernel, 'x', l.kernel, ' ',
                                    l.in, "->", l.out, " at ", l.side, " stride ", l.stride);
      t.attempt(what, [&] {
        const double apart = seconds_of([&] { conv2d_forward(kGpu, c), cuda::statistics(norm); });
        bool fused = false;
        const double s = seconds_of([&] {
          norm.sums = cuda::conv2d_with_sums(c);
          fused = bool(norm.sums.sum);
          cuda::statistics(norm);
        });
        norm.sums = {};
        t.row(what, 100 * apart / s, "% of apart's speed", s, fused ? "fused" : "apart is taken");
      });
    }
}

// The convolutions of a bottleneck in f16.
struct Block {
  Tensor x;
  std::vector<ConvBnLink> links;
  Block(int64_t batch, int64_t side, int64_t width) : x(noise({batch, side, side, 4 * width}, kF16)) {
    add(4 * width, width, 1), add(width, width, 3), add(width, 4 * width, 1);
  }
  void add(int64_t in, int64_t out, int kernel) {
    const NormState norm{noise({out}), noise({out}), noise({out}), noise({out})};
    links.push_back({noise({out, kernel, kernel, in}), {.padding = kernel / 2}, norm});
  }
  // Forward and backward, as a chain or one op after another.
  void step(bool chained) const {
    Tape tape;
    tape.watch(x, Tensor(x.shape(), kF16, kGpu));
    for (const ConvBnLink& l : links)
      for (const Tensor& leaf : {l.w, l.norm.gamma, l.norm.shift})
        tape.watch(leaf, Tensor(leaf.shape(), kF32, kGpu));
    if (chained) return tape.backward(sum(conv_bn_chain(x, links, true)));
    Tensor y = x;
    for (const ConvBnLink& l : links) y = conv_bn(y, l.w, l.geometry, l.norm, {.relu = true});
    tape.backward(sum(y));
  }
};

struct Left {  // norms computed by convolutions so far
  int64_t forward = cuda::fused_runs(cuda::ConvPass::kForward, cuda::kNormalize | cuda::kSums),
          weights = cuda::fused_runs(cuda::ConvPass::kWeights, cuda::kNormalize),
          data = cuda::fused_runs(cuda::ConvPass::kData, cuda::kNormGradient);
};

void bench_chain(Table& t, int64_t batch) {
  for (const auto& [side, width] : {std::pair<int64_t, int64_t>{56, 64}, {28, 128}, {14, 256}, {7, 512}}) {
    const std::string what = text("chain of 1x1, 3x3, 1x1 b", batch, " f16 ", width, " wide at ", side);
    t.attempt(what, [&, side = side, width = width] {
      const Block block(batch, side, width);
      const double apart = seconds_of([&] { block.step(false); });
      block.step(true);
      const Left before;
      block.step(true);
      const Left after;
      const double s = seconds_of([&] { block.step(true); });
      t.row(what, 100 * apart / s, "% of apart's speed", s,
            text("of 2 norms left to forward ", after.forward - before.forward, ", weights ",
                 after.weights - before.weights, ", data ", after.data - before.data));
    });
  }
}

}  // namespace

void bench_fusion(Table& t, int64_t batch) {
  bench_sums(t, batch);
  bench_chain(t, batch);
}

}  // namespace skein::bench
