// Loader: threads that decode samples into a ring of batches, in step order, ahead of the training loop.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "data/pictures/augment.h"
#include "data/reading.h"
#include "data/source.h"
#include "engine/tensor.h"

namespace skein::data {

// What the loop trains on. Rows of unreadable images are zero and have label -1.
struct Batch {
  Tensor images;     // u8 [n,H,W,C]; n may be 0
  Tensor labels;     // i32 [n]
  int64_t step = 0;  // as asked for
  int64_t unreadable = 0;
  int64_t size() const { return images ? images.dim(0) : 0; }
};

// Which samples a step holds and how each is seen. Called on loader threads; must be pure.
struct Plan {
  std::function<int64_t(int64_t step)> count;               // samples in this step's batch
  std::function<int64_t(int64_t step, int64_t row)> index;  // which sample
  std::function<View(int64_t step, int64_t row, int64_t index)> view;
};

// A sample that could not be read: DataSource::name, and the reason in words ("truncated:
// the file ends early").
struct Unreadable {
  std::string name;
  const char* why;
};

class Loader {
 public:
  // Decodes steps [first, last) of the plan with `threads` workers, `depth` batches ahead. Batches land on
  // `device` (through pinned memory where that is a GPU). The source must outlive the loader. The
  // threads run on `cores` alone, if any are given.
  Loader(const DataSource&, Plan, ImageSize out, int64_t first, int64_t last, Device device, int threads,
         int depth = 4, std::vector<int> cores = {});
  ~Loader();  // stops the threads; whatever was decoded ahead is dropped

  // The next step's batch; blocks. Throws what a worker threw. Valid until the call after the next.
  Batch next();

  StageSeconds seconds() const;
  int64_t unreadable() const;  // samples skipped so far, counted once per visit
  Census odd() const;          // the odd files of the batches handed out
  // Each unreadable sample once, by index within a batch; cleared by the call. For the log.
  std::vector<Unreadable> newly_unreadable();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace skein::data
