// Batches: the images of this worker's steps, and what loading them met.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apps/checkpoint/data_index.h"
#include "apps/report/metrics.h"
#include "apps/train/run.h"
#include "data/loader.h"

namespace skein::apps {

// What loading met and how long it took, as a checkpoint holds it: of all runs of the training so far.
struct DataRecord {
  int64_t unreadable = 0;           // images skipped by this worker, counted at every visit
  std::string odd_files = ";";      // OddFiles::pack(), of all workers
  data::StageSeconds loading = {};  // of this worker's training images
  std::array<std::pair<const char*, double*>, 6> stages();
  void visit(Archive&);
};

class Batches {
 public:
  explicit Batches(Run& run) : run_(run) {}

  void open();  // begins to decode, from the step at hand
  data::Batch next() { return loader_->next(); }

  int64_t unreadable();   // images skipped so far
  void say_unreadable();  // those that have not been named yet, a line each
  // Brings the record up to date, in which every worker has the odd files that any of them met. Collective.
  void take_stock();
  const DataIndex& index();  // which images these are; made when it is first asked for
  void describe(Summary&);   // after take_stock(), as it was then
  void visit(Archive& a) { record_.visit(a); }

 private:
  Run& run_;
  std::unique_ptr<data::Loader> loader_;
  DataRecord record_, counted_;  // counted_: the part of record_ that is the present loader's
  std::optional<DataIndex> index_;
};

}  // namespace skein::apps
