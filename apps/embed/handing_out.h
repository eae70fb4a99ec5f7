// HandingOut: parameters' gradients become final in any order; slices of g are handed out in a fixed one.
#pragma once
#include <vector>

#include "optim/strategy.h"

namespace skein {

// A slice holds whole parameters and has at least the given number of bytes, except for the last one. Slices
// run from the last parameter to the first, as backward reaches them, and are the same on all workers,
// whatever the order in which gradients become final. Only one thread may use it.
class HandingOut {
 public:
  // sizes: elements of each parameter, in the order in which they lie in g.
  HandingOut(Tensor g, const std::vector<int64_t>& sizes, int64_t least_bytes);

  void begin(const optim::Slices&);  // of a step; they must live until end()
  // Hands out the slices that are complete now; CHECKs that a step is under way.
  void ready(size_t parameter);
  void end();  // hands out the others, and waits until all of g holds the sum
  void abandon() { slices_ = nullptr; }

 private:
  struct Slice {
    size_t first, last;  // parameters [first, last)
    int64_t begin, end;  // elements
  };
  void hand_out(bool all);

  const Tensor g_;
  std::vector<Slice> order_;
  std::vector<bool> ready_;
  size_t next_ = 0;
  const optim::Slices* slices_ = nullptr;
};

}  // namespace skein
