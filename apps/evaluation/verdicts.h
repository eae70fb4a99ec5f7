// How a model classified each test image: accuracy by class, and which classes it confuses.
#pragma once
#include <string>
#include <vector>

#include "apps/base/json.h"
#include "comm/communicator/communicator.h"
#include "data/source.h"

namespace skein::apps {

struct Verdict {
  int64_t index = 0;  // index in the test split
  int32_t truth = 0, guess = 0;
  float probability = 0;  // the guess' probability
};
// Adds the verdicts on logits [n, classes], f32 on the host; of equal logits the lower class wins. Images
// without a label are skipped.
void judge(const Tensor& logits, const Tensor& labels, const std::vector<int64_t>& indices,
           std::vector<Verdict>& verdicts);
// The verdicts of all workers by index on rank 0; none elsewhere. Collective.
std::vector<Verdict> gather_verdicts(comm::Communicator&, const std::vector<Verdict>& mine);

struct Tally {
  struct Confusion {
    int32_t truth = 0, guess = 0;
    int64_t images = 0;
  };
  std::vector<int64_t> images, correct;  // by class
  std::vector<Confusion> confusions;     // the wrong guesses, most frequent first
};
Tally tally(const std::vector<Verdict>&, size_t classes);

// The mistakes that were made with the highest probability, highest first.
std::vector<Verdict> boldest_mistakes(const std::vector<Verdict>&, size_t most);

// "classes", "images_by_class", "correct_by_class", "confusions" and, with
// few classes, "confusion" (docs/metrics.md).
Json to_json(const Tally&, const std::vector<std::string>& classes);

// A line per class: images, accuracy, and its most frequent confusion. With more than `most` classes, those
// with the lowest accuracy.
std::string class_table(const Tally&, const std::vector<std::string>& classes, size_t most = 50);

// [{"name", "truth", "guess", "probability", "picture"}]: names as in `test`, classes as numbers, pictures as
// the model saw them, small, as data URIs.
Json show_mistakes(const std::vector<Verdict>&, const data::DataSource& test);

}  // namespace skein::apps
