// Evaluations: the scores, the best model so far, which is kept, and patience when it stays the best for long.
#include <filesystem>

#include "apps/clock.h"
#include "apps/consensus_model.h"
#include "apps/preparation.h"
#include "apps/together.h"
#include "apps/trainer.h"
#include "engine/file.h"

namespace skein::apps {

bool Trainer::score() {
  const Timed t(seconds_.evaluate, trace_.get(), "evaluate");
  const ConsensusModel consensus(config_, setup_, flat_, *strategy_, *worker_);
  std::vector<Verdict> verdicts;
  const std::optional<Score> s =
      evaluate(setup_, comm(), *setup_.model, evaluation_batch(), stop_, &verdicts);
  if (!s) return false;
  keep_if_best(*s, false);
  if (!score_ema()) return false;
  enough_ = is_patience_over();
  if (!setup_.alone) distance_ = consensus.distance();
  score_ = s;
  verdicts_ = std::move(verdicts);
  scored_step_ = k_;
  best_top1_ = std::max(best_top1_, s->top1);
  EvalEvent event;
  event.step = k_, event.epoch = epochs_seen(), event.seconds = elapsed();
  event.loss = s->loss, event.top1 = s->top1, event.top5 = s->top5;
  event.consensus_distance = distance_;
  if (ema_score_) event.ema_loss = ema_score_->loss, event.ema_top1 = ema_score_->top1;
  event.bytes = over_workers(Sums{}).bytes;
  scored_ = event;
  return true;
}

void Trainer::record_score() {
  if (scored_) record(*std::exchange(scored_, {}));
}

void Trainer::keep_if_best(const Score& s, bool ema) {
  together(comm(), [&] {
    if (first() && best_.is_better(s))
      best_.keep(s, epochs_seen(), ema, *setup_.model, model_info(config_, setup_, k_));
  });
}

// Counted in epochs, which a resumed run has, too.
bool Trainer::is_patience_over() {
  if (config_.patience == 0 || config_.eval_every == 0 || k_ == setup_.total_steps) return false;
  const std::optional<Best>& best = best_.found();
  const int64_t epochs = best ? (k_ - best->step) / setup_.steps_per_epoch : 0;
  const bool over = epochs >= config_.patience * config_.eval_every;
  const bool agreed = !from_rank_zero(comm(), over ? "over" : "").empty();
  if (agreed && first())
    progress_.say(text("no better evaluation than that of epoch ", best->epoch, ", top-1 ", best->top1,
                       " %, in --patience ", config_.patience, ": training ends here"));
  return agreed;
}

void Trainer::leave_evaluation() {
  constexpr size_t kMistakes = 12;
  if (scored_step_ < 0) return;  // on every worker
  const std::vector<Verdict> all = gather_verdicts(comm(), verdicts_);
  together(comm(), [&] {
    if (!first()) return;
    const data::DataSource& test = *setup_.data.test;
    Json j = {
        {"step", scored_step_}, {"top1", score_->top1}, {"loss", score_->loss}, {"images", score_->images}};
    j.update(to_json(tally(all, test.classes().size()), test.classes()));
    j["mistakes"] = show_mistakes(boldest_mistakes(all, kMistakes), test);
    write_file((std::filesystem::path(directory_) / "evaluation.json").string(),
               j.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n');
  });
}

}  // namespace skein::apps
