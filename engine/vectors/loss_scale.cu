// Judging a gradient in blocks of fixed size, then one verdict, which stays on the device.
#include "engine/vectors/loss_scale.h"

#include <cfloat>
#include <cmath>

#include "engine/loops/launch.h"
#include "engine/words/number.h"

namespace skein {

namespace {
constexpr int64_t kBlock = 1 << 13;
}

struct Unscale {
  float *bad, *x;
  int64_t n;
  const float* state;
  template <class Team>
  HD void operator()(int64_t b, Team team) const {
    const float by = state[LossScale::kInverse];
    const int64_t end = (b + 1) * kBlock < n ? (b + 1) * kBlock : n;
    float count = 0;
#pragma omp simd reduction(+ : count)
    for (int64_t i = b * kBlock + team.lane(); i < end; i += Team::kLanes) {
      x[i] *= by;
      count += fabsf(x[i]) <= FLT_MAX ? 0.f : 1.f;
    }
    count = team.sum(count);
    if (team.lane() == 0) bad[b] = count;
  }
};

struct Verdict {
  float* state;
  const float* bad;
  int64_t blocks;
  bool dynamic;
  template <class Team>
  HD void operator()(int64_t, Team team) const {
    float most = 0;
    for (int64_t b = team.lane(); b < blocks; b += Team::kLanes) most = bad[b] > most ? bad[b] : most;
    most = team.max(most);
    if (team.lane() != 0) return;
    const bool fine = most == 0;
    state[LossScale::kOn] = fine ? 1.f : 0.f;
    if (!fine) state[LossScale::kSkipped] += 1;
    float scale = state[LossScale::kScale], good = fine ? state[LossScale::kGood] + 1 : 0;
    const bool moves = dynamic && scale > LossScale::kLeast;
    state[LossScale::kStuck] = fine || moves ? 0 : state[LossScale::kStuck] + 1;
    if (dynamic && !fine) scale = scale / 2 > LossScale::kLeast ? scale / 2 : LossScale::kLeast;
    if (dynamic && good >= LossScale::kGoodSteps) {
      scale = scale * 2 < LossScale::kMost ? scale * 2 : LossScale::kMost;
      good = 0;
    }
    state[LossScale::kScale] = scale, state[LossScale::kGood] = good;
    state[LossScale::kInverse] = 1 / scale;
  }
};

struct Invert {
  float* state;
  HD void operator()(int64_t) const { state[LossScale::kInverse] = 1 / state[LossScale::kScale]; }
};

LossScale::LossScale(Device d, bool dynamic, float start)
    : state_(Tensor::of<float>({kSlots}, {start, 0, 0, 1 / start, 1, 0}).to(d)),
      arriving_({kSlots}, kF32, pinned_allocator()),
      dynamic_(dynamic) {
  CHECK(start >= kLeast && start <= kMost, start);
  send();
}

void LossScale::judge(const Tensor& g) {
  CHECK(g.dtype() == kF32 && g.device() == state_.device(), g.dtype(), g.device(), state_.device());
  const int64_t n = g.size(), blocks = (n + kBlock - 1) / kBlock;
  const Tensor counts({blocks}, kF32, g.device());  // how many numbers of each block are not finite
  float* const bad = counts.data<float>();
  for_each_team(g.device(), blocks, n, Unscale{bad, g.data<float>(), n, state()});
  for_each_team(g.device(), 1, blocks, Verdict{state(), bad, blocks, dynamic_});
}

void LossScale::send() {
  copy_bytes(arriving_, state_);
  arrived_ = current_stream(state_.device()).record();
}
LossScale::State LossScale::take() {
  arrived_.sync();
  const float* s = arriving_.data<float>();
  return {s[kScale], s[kGood], s[kSkipped], s[kStuck]};
}

void LossScale::visit(Archive& a) {
  Tensor scale = state_.view({2}), skipped = state_.view({1}, kSkipped);
  a("scale", scale), a("skipped", skipped);
  if (a.loading()) for_each(state_.device(), 1, Invert{state()}), send();
}

std::unique_ptr<LossScale> make_loss_scale(const std::string& word, DType activations, Device d) {
  if (word == "none" || (word == "auto" && activations != kF16)) return nullptr;
  if (word == "auto" || word == "dynamic") return std::make_unique<LossScale>(d, true);
  const auto number = number_in<float>(word);
  if (!number || !(*number >= LossScale::kLeast && *number <= LossScale::kMost))
    throw BadOption("--loss-scale " + word +
                    ": allowed are auto (dynamic for fp16, else none), none, dynamic, and a number from 1 to "
                    "16777216");
  return std::make_unique<LossScale>(d, false, *number);
}

}  // namespace skein
