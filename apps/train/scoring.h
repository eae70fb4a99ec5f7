// Scoring: evaluations of the workers' common model, and the best of them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/evaluation/best_model.h"
#include "apps/evaluation/evaluate.h"
#include "apps/report/metrics.h"
#include "apps/train/learning.h"

namespace skein::apps {

class Scoring {
 public:
  Scoring(Run&, Traces&, Learning&);

  // Worker 0 opens the best model so far, which is that of the run in `resumed_from`, if any.
  void open(const std::string& resumed_from);

  bool is_due() const;  // --eval-every, after an epoch
  bool is_current() const { return step_ == run_.k; }
  // Scores the model and the moving average of its weights, and keeps the better one if it is the best so
  // far. Returns false if the run was asked to stop meanwhile, and has then changed nothing. Collective.
  bool score();
  std::optional<EvalEvent> take_event() {
    return std::exchange(event_, {});
  }                                           // of a score that is not recorded yet
  std::string line() const;                   // for the line of an epoch: " test loss ..." if it was scored
  bool is_enough() const { return enough_; }  // --patience is over

  const std::optional<Score>& latest() const { return score_; }
  const std::optional<Score>& latest_of_average() const { return average_score_; }
  const std::optional<Best>& best() const { return best_.found(); }

  // Called at the end, all collective: hashes of the workers' own models; the model of the moving
  // average, as a file; how far the workers are apart; and evaluation.json, by class and with the worst
  // mistakes of the latest evaluation.
  void hash_workers();
  void leave_average();
  void note_distance(const ConsensusModel&);
  void leave_evaluation();
  void describe(ModelFigures&) const;
  void visit(Archive& a) { a("best_top1", best_top1_); }

 private:
  std::optional<Score> evaluate_model(std::vector<Verdict>* verdicts);
  void keep_if_best(const Score&, bool of_average);
  bool is_patience_over();
  EvalEvent event() const;

  Run& run_;
  Traces& traces_;
  Learning& learning_;
  BestModel best_;     // on worker 0
  int64_t step_ = -1;  // of the latest evaluation
  std::optional<Score> score_, average_score_;
  std::vector<Verdict> verdicts_;  // this worker's, of the latest evaluation
  std::optional<EvalEvent> event_;
  double best_top1_ = -1;
  bool enough_ = false;
  std::optional<double> distance_;  // consensus distance at the latest evaluation
  std::vector<std::string> worker_hashes_;
  std::string average_hash_;
};

}  // namespace skein::apps
