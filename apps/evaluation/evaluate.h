// Scores a model on a data set.
#pragma once
#include <functional>
#include <optional>

#include "apps/evaluation/verdicts.h"
#include "apps/setup/setup.h"

namespace skein::apps {

struct Score {
  double top1 = 0;             // percent of the readable images
  std::optional<double> top5;  // the same; none for five classes or fewer, where it would always be 100
  double loss = 0;             // mean cross entropy, without label smoothing
  int64_t images = 0;          // readable ones
};

// "top-1 91.16 %, top-5 99.88 %, loss 0.2465 on 10000 test images"
std::string describe(const Score&);

// Scores the whole test split, with running statistics and without augmentation; leaves the model in training
// mode. Collective: each worker scores a part, and all get the total. A single worker returns nothing if
// `stop` becomes true on the way. `verdicts`, if given, receives those of this worker's part.
std::optional<Score> evaluate(const Setup&, comm::Communicator&, nn::Module&, int64_t batch_size,
                              const std::function<bool()>& stop = {},
                              std::vector<Verdict>* verdicts = nullptr);

}  // namespace skein::apps
