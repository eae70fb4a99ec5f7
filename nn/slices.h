// Slices: parts of a gradient that are final, and can be sent, while backward still runs.
#pragma once
#include "nn/module.h"

namespace skein::nn {

// The bytes of a slice of a gradient of so many bytes: those of `mib`, or, if it is 0, 4 MiB, beside which
// the cost of a message is small, but an eighth of a small gradient, and at least 256 KiB, since what is sent
// last cannot hide behind backward. At least one byte.
int64_t slice_bytes_for(int64_t gradient_bytes, double mib = 0);

struct Slice {
  int64_t begin = 0, end = 0;  // elements of g
};

// Turns "this segment of g is final" into "this slice of g is final". Slices have about `slice_bytes`, are
// cut the same every step and always come in the same order, so that ranks agree: first the decaying region
// from its end to its front, as fast as backward finishes a growing suffix of it; then the other region,
// once all of g is final. The last slice of either (the input side, whose communication cannot be hidden) is
// at most 1 MB. Every element of g is in exactly one slice a step.
class SliceOrder {
 public:
  using Ready = std::function<void(Slice)>;
  SliceOrder(const Layout&, int64_t slice_bytes);
  void start();  // of a step
  // The segment that begins at this element is final. Fails if there is none, or if it already was.
  void mark(int64_t begin, const Ready&);
  void finish(const Ready&);  // gives what is left

 private:
  void cut(int64_t begin, int64_t end, int64_t first, int64_t each);
  bool is_final(const Slice&) const;
  void give(bool all, const Ready&);

  const int64_t decayed_;
  std::vector<int64_t> starts_;  // of the segments, ascending
  std::vector<Slice> slices_;    // in their order
  std::vector<bool> final_;      // by segment
  size_t next_ = 0;              // slice
  size_t decaying_ = 0;          // segments
  size_t edge_ = 0;              // decaying segments from here to the end of their region are final
  size_t unfinished_ = 0;
};

// The same for the tensors of one vector.
class Slicer {
 public:
  Slicer(const Flat&, int64_t slice_bytes);
  // To be given to Tape::backward; calls `ready(slice)`. The Slicer must outlive it.
  GradReady start(GradReady ready);
  void finish();  // after backward: emits what is left

 private:
  void emit(Slice) const;

  const Tensor g_;
  SliceOrder order_;
  GradReady ready_;
};

}  // namespace skein::nn
