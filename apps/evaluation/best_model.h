// BestModel: the model of the best evaluation so far, as DIR/model_best.safetensors.
#pragma once
#include <optional>
#include <string>

#include "apps/base/json.h"
#include "apps/evaluation/evaluate.h"
#include "apps/model/weights.h"

namespace skein::apps {

struct Best {
  double top1 = 0, loss = 0, epoch = 0;
  int64_t step = 0;
  bool ema = false;  // the model is the moving average of the weights
};

// Lives on worker 0. The file says which evaluation it comes from, so resuming needs nothing else.
class BestModel {
 public:
  static constexpr const char* kFile = "model_best.safetensors";

  // Starts a new run in `directory`: removes a file that an earlier attempt has left there.
  void begin(const std::string& directory);
  // Continues the training of the run in `from`, which may be `directory`, at `step`. A file of a later step
  // was abandoned, and the next evaluation replaces it. A damaged file is ignored.
  void resume(const std::string& directory, const std::string& from, int64_t step);

  // Compares by accuracy, then by loss.
  bool is_better(const Score&) const;
  // Writes the model that was scored, which the module holds, atomically. Throws BadFile.
  void keep(const Score&, double epoch, bool ema, nn::Module&, ModelInfo);
  const std::optional<Best>& found() const { return best_; }

 private:
  std::string path_;
  std::optional<Best> best_;
};

Json to_json(const Best&);  // "best" in summary.json

}  // namespace skein::apps
