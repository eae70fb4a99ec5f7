// All workers score the mean of their models, each on a part of the test images.
#include "apps/train/scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/base/together.h"
#include "apps/model/weights.h"
#include "apps/train/over_workers.h"
#include "apps/train/saving.h"
#include "engine/words/file.h"
#include "engine/words/json.h"

namespace skein::apps {

namespace fs = std::filesystem;

Scoring::Scoring(Run& run, Traces& traces, Learning& learning)
    : run_(run), traces_(traces), learning_(learning) {}

void Scoring::open(const std::string& resumed_from) {
  if (resumed_from.empty())
    best_.begin(run_.directory);
  else
    best_.resume(run_.directory, resumed_from, run_.k);
}

bool Scoring::is_due() const {
  return run_.config.eval_every > 0 && run_.epochs() % run_.config.eval_every == 0;
}

bool Scoring::score() {
  const Timed t = traces_.timed(run_.costs.seconds.evaluate, "evaluate");
  const ConsensusModel consensus = learning_.consensus();
  std::vector<Verdict> verdicts;
  const std::optional<Score> s = evaluate_model(&verdicts);
  if (!s) return false;
  keep_if_best(*s, false);
  if (learning_.ema) {
    const ConsensusModel average = learning_.consensus(true);
    const std::optional<Score> of_average = evaluate_model(nullptr);
    if (!of_average) return false;
    average_score_ = of_average;
    keep_if_best(*of_average, true);
  }
  enough_ = is_patience_over();
  note_distance(consensus);
  score_ = s;
  verdicts_ = std::move(verdicts);
  step_ = run_.k;
  best_top1_ = std::max(best_top1_, s->top1);
  event_ = event();
  return true;
}

// Evaluates in the passes of --accumulate, because a whole batch would not fit into memory here either.
std::optional<Score> Scoring::evaluate_model(std::vector<Verdict>* verdicts) {
  const Config& c = run_.config;
  const int64_t batch = (c.batch_size.most + c.accumulate - 1) / c.accumulate;
  return evaluate(run_.setup, run_.comm(), *run_.setup.model, batch, run_.stop, verdicts);
}

EvalEvent Scoring::event() const {
  EvalEvent e;
  e.step = run_.k, e.epoch = run_.epochs_seen();
  e.loss = score_->loss, e.top1 = score_->top1, e.top5 = score_->top5;
  e.consensus_distance = distance_;
  if (average_score_) e.ema_loss = average_score_->loss, e.ema_top1 = average_score_->top1;
  e.bytes = over_workers(run_.comm(), Seen{.bytes = run_.bytes_sent()}).bytes;
  return e;
}

std::string Scoring::line() const {
  if (!is_current()) return "";
  std::string s = fmt::format("  test loss {:.4f} top-1 {:.2f} %", score_->loss, score_->top1);
  if (average_score_) s += fmt::format("  average's {:.2f} %", average_score_->top1);
  return s;
}

// The module holds what was scored.
void Scoring::keep_if_best(const Score& s, bool of_average) {
  together(run_.comm(), [&] {
    if (!run_.first() || !best_.is_better(s)) return;
    try {
      best_.keep(s, run_.epochs_seen(), of_average, *run_.setup.model,
                 model_info(run_.config, run_.setup, run_.k));
    } catch (const BadFile& e) { throw BadFile(text(e.what(), "; ", how_to_resume(run_.directory))); }
  });
}

// Patience is counted in epochs, because a resumed run knows them, too.
bool Scoring::is_patience_over() {
  const Config& c = run_.config;
  if (c.patience == 0 || c.eval_every == 0 || run_.k == run_.setup.total_steps) return false;
  const std::optional<Best>& best = best_.found();
  const int64_t epochs = best ? (run_.k - best->step) / run_.setup.steps_per_epoch : 0;
  const bool over = epochs >= c.patience * c.eval_every;
  const bool agreed = !from_rank_zero(run_.comm(), over ? "over" : "").empty();
  if (agreed && run_.first())
    run_.progress.say(text("no better evaluation than that of epoch ", best->epoch, ", top-1 ", best->top1,
                           " %, in --patience ", c.patience, ": training ends here"));
  return agreed;
}

void Scoring::hash_workers() {
  worker_hashes_.clear();
  if (run_.setup.alone) return;
  const std::string own = parameter_hash(learning_.flat, learning_.flat.x);
  for (int r = 0; r < run_.comm().size(); ++r)
    worker_hashes_.push_back(comm::broadcast_text(run_.comm(), own, r));
}

void Scoring::leave_average() {
  if (!learning_.ema) return;
  const ConsensusModel average = learning_.consensus(true);
  average_hash_ = parameter_hash(learning_.flat, learning_.flat.x);
  together(run_.comm(), [&] {
    if (run_.first())
      export_model((fs::path(run_.directory) / "model_ema.safetensors").string(), *run_.setup.model,
                   model_info(run_.config, run_.setup, run_.k));
  });
}

void Scoring::note_distance(const ConsensusModel& consensus) {
  if (!run_.setup.alone) distance_ = consensus.distance();
}

void Scoring::leave_evaluation() {
  constexpr size_t kMistakes = 12;
  if (step_ < 0) return;  // true on every worker
  const std::vector<Verdict> all = gather_verdicts(run_.comm(), verdicts_);
  together(run_.comm(), [&] {
    if (!run_.first()) return;
    const data::DataSource& test = *run_.setup.data.test;
    Json j = {{"step", step_}, {"top1", score_->top1}, {"loss", score_->loss}, {"images", score_->images}};
    j.update(to_json(tally(all, test.classes().size()), test.classes()));
    j["mistakes"] = show_mistakes(boldest_mistakes(all, kMistakes), test);
    write_file((fs::path(run_.directory) / "evaluation.json").string(), json_text(j) + '\n');
  });
}

void Scoring::describe(ModelFigures& m) const {
  if (score_) m.top1 = score_->top1, m.top5 = score_->top5, m.loss = score_->loss;
  if (best_top1_ >= 0) m.best_top1 = best_top1_;
  if (best_.found()) m.best = to_json(*best_.found());
  if (average_score_)
    m.ema_top1 = average_score_->top1, m.ema_top5 = average_score_->top5, m.ema_loss = average_score_->loss;
  m.ema_hash = average_hash_;
  m.worker_hashes = worker_hashes_;
  m.consensus_distance = distance_;
}

}  // namespace skein::apps
