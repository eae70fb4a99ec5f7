// The moving average of the weights beside the model: scored with it, and saved at the end.
#include <filesystem>

#include "apps/preparation.h"
#include "apps/together.h"
#include "apps/trainer.h"
#include "apps/weights.h"

namespace skein::apps {

// Passes that --accumulate cuts a batch into are cut here, too: what does not fit in memory there does not
// here.
int64_t Trainer::evaluation_batch() const {
  return (config_.batch_size + config_.accumulate - 1) / config_.accumulate;
}

bool Trainer::score_ema() {
  if (!ema_) return true;
  const ConsensusModel average(config_, setup_, flat_, *strategy_, *worker_, &*ema_);
  const std::optional<Score> s = evaluate(setup_, comm(), *setup_.model, evaluation_batch(), stop_);
  if (!s) return false;
  ema_score_ = s;
  keep_if_best(*s, true);
  return true;
}

void Trainer::leave_ema() {
  if (!ema_) return;
  const ConsensusModel average(config_, setup_, flat_, *strategy_, *worker_, &*ema_);
  ema_hash_ = parameter_hash(flat_, flat_.x);
  together(comm(), [&] {
    if (first())
      export_model((std::filesystem::path(directory_) / "model_ema.safetensors").string(), *setup_.model,
                   model_info(config_, setup_, k_));
  });
}

void Trainer::describe_ema(Summary& s) const {
  if (ema_score_) s.ema_top1 = ema_score_->top1, s.ema_top5 = ema_score_->top5, s.ema_loss = ema_score_->loss;
  s.ema_hash = ema_hash_;
}

}  // namespace skein::apps
