// Batches: the images of this worker's steps, and the record of loading them.
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

// What loading found and how long it took, over all runs of the training so far. It is part of checkpoints.
struct DataRecord {
  int64_t unreadable = 0;           // images this worker skipped, counted at every visit
  std::string odd_files = ";";      // OddFiles::pack() over all workers
  data::StageSeconds loading = {};  // for this worker's training images
  std::array<std::pair<const char*, double*>, 6> stages();
  void visit(Archive&);
};

class Batches {
 public:
  explicit Batches(Run& run) : run_(run) {}

  void open();   // starts to decode, from the current step
  void close();  // stops, so that what a step holds may change; open() goes on
  bool is_open() const { return loader_ != nullptr; }
  data::Batch next() { return loader_->next(); }

  int64_t unreadable();   // images skipped so far
  void say_unreadable();  // prints those that have not been named yet, a line each
  // Brings the record up to date; every worker then has the odd files of all workers. Collective.
  void take_stock();
  const DataIndex& index();     // which images these are; computed on first use
  void describe(DataFigures&);  // describes the state as of take_stock()
  void visit(Archive& a) { record_.visit(a); }

 private:
  void count();
  Run& run_;
  std::unique_ptr<data::Loader> loader_;
  DataRecord record_, counted_;  // counted_: the part of record_ that comes from the current loader
  std::optional<DataIndex> index_;
};

}  // namespace skein::apps
