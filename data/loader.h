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

// A batch for the training loop. Rows of unreadable images are zero and have label -1.
struct Batch {
  Tensor images;     // u8 [n,H,W,C]; n may be 0
  Tensor labels;     // i32 [n]
  int64_t step = 0;  // as requested
  int64_t unreadable = 0;
  int64_t size() const { return images ? images.dim(0) : 0; }
};

// Which samples a step holds and how each is viewed. The functions are called on loader threads
// and must be pure.
struct Plan {
  std::function<int64_t(int64_t step)> count;               // samples in this step's batch
  std::function<int64_t(int64_t step, int64_t row)> index;  // which sample
  std::function<View(int64_t step, int64_t row, int64_t index)> view;
};

// A sample that could not be read: DataSource::name, and the reason ("truncated: the file ends early").
struct Unreadable {
  std::string name;
  const char* why;
};

class Loader {
 public:
  // Decodes steps [first, last) of the plan with `threads` workers, `depth` batches ahead. Batches arrive on
  // `device` (through pinned memory if that is a GPU). The source must outlive the loader. The threads run
  // only on `cores`, if any are given.
  Loader(const DataSource&, Plan, ImageSize out, int64_t first, int64_t last, Device device, int threads,
         int depth = 4, std::vector<int> cores = {});
  ~Loader();  // stops the threads and drops what was decoded ahead

  // Waits for the next step's batch. It is valid until the call after the next one. Rethrows what
  // a loader thread threw.
  Batch next();

  StageSeconds seconds() const;
  int64_t unreadable() const;  // samples skipped so far, counted once per visit
  Census odd() const;          // the odd files of the batches handed out
  // Each unreadable sample since the last call once, ordered by index within a batch. For the log.
  std::vector<Unreadable> newly_unreadable();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace skein::data
