// What a model took each test image for: by class, and which classes it takes for which.
#pragma once
#include <string>
#include <vector>

#include "apps/base/json.h"
#include "comm/communicator/communicator.h"
#include "data/source.h"

namespace skein::apps {

struct Verdict {
  int64_t index = 0;  // in the test split
  int32_t truth = 0, guess = 0;
  float probability = 0;  // of the guess
};
// Of logits [n, classes] on the host, f32; of equal logits the lower class. Images without a label have none.
void judge(const Tensor& logits, const Tensor& labels, const std::vector<int64_t>& indices,
           std::vector<Verdict>& verdicts);
// Of all workers, by index, on rank 0; elsewhere none. Collective.
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

// "classes", "images_by_class", "correct_by_class", "confusions" and, of
// few classes, "confusion": docs/metrics.md.
Json to_json(const Tally&, const std::vector<std::string>& classes);

// A line a class: images, accuracy, what it is most often taken for. Of more classes than `most` those
// with the lowest accuracy.
std::string class_table(const Tally&, const std::vector<std::string>& classes, size_t most = 50);

// [{"name", "truth", "guess", "probability", "picture"}]: names as `test` has them, classes as numbers,
// pictures as the model saw them, small, as data URIs.
Json show_mistakes(const std::vector<Verdict>&, const data::DataSource& test);

}  // namespace skein::apps
