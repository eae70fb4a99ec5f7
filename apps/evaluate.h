// Scores a model on a data set.
#pragma once
#include <functional>
#include <optional>

#include "apps/setup.h"

namespace skein::apps {

struct Score {
  double top1 = 0,
         top5 = 0;     // percent of the readable images; top5 with fewer than 5 classes: of all classes
  double loss = 0;     // mean cross entropy, without label smoothing
  int64_t images = 0;  // readable ones
};

// The whole test split, with running statistics and without augmentation; leaves the model in training mode.
// Several workers score a part each and all get the score of the whole: collective. Alone, nothing is
// returned if `stop` becomes true on the way.
std::optional<Score> evaluate(const Setup&, nn::Module&, int64_t batch_size,
                              const std::function<bool()>& stop = {});

}  // namespace skein::apps
