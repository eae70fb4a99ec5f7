// Outcome: how a run ended.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "apps/evaluation/best_model.h"
#include "apps/evaluation/evaluate.h"
#include "apps/survival/legacy.h"

namespace skein::apps {

struct Outcome {
  int64_t step = 0;              // steps taken
  bool interrupted = false;      // so no model was written
  bool out_of_patience = false;  // --patience has ended the run
  bool bereaved = false;         // interrupted because workers were lost
  std::string why = {};          // then, on one of the others: which were lost, and how to resume
  std::optional<Score> score;    // of the last evaluation
  std::optional<Score> ema;      // the same, of the moving average of the weights
  std::optional<Best> best;      // model_best.safetensors, on worker 0
  std::string hash;              // of the parameters that were evaluated
  double images_per_second = 0;  // while training
  double training_seconds = 0;
  std::optional<double> bytes_per_step = {}, hidden_share = {};  // as in Summary
  std::shared_ptr<Legacy> legacy =
      {};  // the membership changes: this goes with the worker into the next epoch
};

}  // namespace skein::apps
