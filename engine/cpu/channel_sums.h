// Sums over the pixels of a convolution's result, taken where it is made: a norm need not read it for them.
#pragma once
#include <vector>

#include "engine/backend.h"

namespace skein::cpu {

// Each block of a convolution's work adds to floats of its own, and these are added in the order of blocks:
// equal blocks give equal bits, whichever thread took them.
class BlockSums {
 public:
  // `to` is empty if no sums are wanted.
  BlockSums(const ChannelSums& to, int64_t blocks)
      : to_(to), channels_(to.sum ? to.sum.size() : 0), floats_(Tensor::zeros({blocks, 2 * channels_})) {}

  // Of a block: [channels] sums, then [channels] sums of squares; null if none are wanted.
  float* of(int64_t block) { return channels_ ? floats_.data<float>() + block * 2 * channels_ : nullptr; }

  // Sets what was given to the sums of all blocks.
  void finish() const {
    std::vector<double> all(size_t(2 * channels_));
    const float* from = floats_.data<float>();
    for (int64_t b = 0; b < floats_.dim(0); ++b)
      for (double& sum : all) sum += double(*from++);
    for (int64_t c = 0; c < channels_; ++c) {
      to_.sum.data<float>()[c] = float(all[size_t(c)]);
      to_.squares.data<float>()[c] = float(all[size_t(channels_ + c)]);
    }
  }

 private:
  const ChannelSums to_;
  const int64_t channels_;
  const Tensor floats_;
};

}  // namespace skein::cpu
