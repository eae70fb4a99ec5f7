// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011). Every draw is a pure function of
// (seed, purpose, step, index), the same on every device and in every world size.
#pragma once
#include "engine/tensor.h"

namespace skein {

struct Philox4 {
  uint32_t v[4];
};

// Ten rounds on a 128-bit counter under a 64-bit key.
HD Philox4 philox(uint64_t key, uint64_t counter_lo, uint64_t counter_hi) {
  uint32_t c0 = uint32_t(counter_lo), c1 = uint32_t(counter_lo >> 32), c2 = uint32_t(counter_hi),
           c3 = uint32_t(counter_hi >> 32), k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
    const uint32_t n0 = uint32_t(p1 >> 32) ^ c1 ^ k0, n2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c1 = uint32_t(p1), c3 = uint32_t(p0), c0 = n0, c2 = n2;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// 24 bits to [0, 1).
HD float unit_float(uint32_t bits) { return float(bits >> 8) * 0x1p-24f; }

// What a draw is for. It is part of the counter, so two purposes never share numbers. Its values are part of
// the on-disk contract (resume, replay): append, never renumber.
enum class Purpose : uint32_t {
  kInit = 1,
  kOrder = 2,
  kAugment = 3,
  kDropout = 4,
  kSynthetic = 5,
  kGraph = 6,
  kFault = 7,
  kSplit = 8,
  kTest = 9,
  kMix = 10,     // mixup and cutmix
  kPull = 11,    // palsgd: whether a worker is pulled instead of stepping
  kSample = 12,  // sparta: which elements are averaged
};

// A family of draws. `step` is the training step, epoch or parameter index, depending on the purpose; `lane`
// tells apart ranks, layers or samples within a step.
struct Draw {
  uint64_t seed = 0;
  Purpose purpose = Purpose::kTest;
  uint64_t step = 0;
  uint32_t lane = 0;
  const uint64_t* step_slot = nullptr;  // in device memory; if not null, kernels read the step from it
  // The i-th block of four words: key = seed, counter = (i, purpose | lane, step).
  HD Philox4 block(uint32_t i) const {
    return philox(seed, (uint64_t(uint32_t(purpose) << 24 ^ lane) << 32) | i, step_slot ? *step_slot : step);
  }
  HD uint32_t bits(uint64_t i) const { return block(uint32_t(i >> 2)).v[i & 3]; }
  HD float unit(uint64_t i) const { return unit_float(bits(i)); }
};

// x[i] <- lo + (hi - lo) * draw.unit(i); any floating type.
void fill_uniform(const Tensor& x, const Draw&, float lo, float hi);
// x[i] <- mean + std * N(0, 1), Box-Muller on words 2j and 2j+1 for elements 2j (cosine) and 2j+1 (sine).
void fill_normal(const Tensor& x, const Draw&, float mean, float std);

// Gives randomness to the layers that need it (dropout): the trainer opens a scope per step and rank, and
// each call of next_draw() takes the next lane. Outside a scope next_draw() throws. Scopes are per thread.
class RandomScope {
 public:
  // `step_slot` as in Draw: for steps that are recorded.
  RandomScope(uint64_t seed, uint64_t step, uint32_t rank, const uint64_t* step_slot = nullptr);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  static Draw next_draw();

 private:
  Draw next_;
  RandomScope* outer_;
};

}  // namespace skein
